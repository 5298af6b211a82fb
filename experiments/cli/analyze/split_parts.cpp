// Opens the other files only as long as a file that borrows from them is open.
#include "experiments/cli/analyze/split_parts.hpp"

#include <halfscope/core/error.hpp>

namespace halfscope {
namespace {

/// The first file that has a tensor, by the tensor's name; files that cannot be read have none.
std::map<std::string, std::string> paths_of_names(const std::vector<std::string>& paths,
                                                  const TensorSelection& selection) {
  std::map<std::string, std::string> found;
  for (const std::string& path : paths) {
    try {
      for (const std::string& name : names_in(*open_tensor_file(path, selection.raw_type)))
        found.emplace(name, path);
    } catch (const InvalidArgument&) {
      continue;  // its own line says why
    }
  }
  return found;
}

}  // namespace

std::unique_ptr<TensorFile> SplitParts::complete(std::unique_ptr<TensorFile> file, const std::string& path) {
  if (paths_.size() < 2 || selection_.view == QuantizedView::payload) return file;
  const AbsentParts absent = absent_parts(*file);
  std::vector<LentPart> parts;
  for (const std::string& name : absent.scales)
    if (auto other = other_with(name, path)) parts.push_back({std::move(other), name});
  std::set<std::string> payloads;
  for (const std::string& name : absent.payloads)
    if (const auto other = other_with(name, path); other && has_payload(*other, name)) payloads.insert(name);
  if (parts.empty() && payloads.empty()) return file;
  return join_parts(std::move(file), std::move(parts), payloads);
}

std::shared_ptr<const TensorFile> SplitParts::other_with(const std::string& name, const std::string& path) {
  if (!path_of_name_) path_of_name_ = paths_of_names(paths_, selection_);
  const auto found = path_of_name_->find(name);
  if (found == path_of_name_->end() || found->second == path) return nullptr;
  std::weak_ptr<const TensorFile>& known = open_[found->second];
  std::shared_ptr<const TensorFile> file = known.lock();
  if (!file) known = file = open_tensor_file(found->second, selection_.raw_type);
  return file;
}

}  // namespace halfscope
