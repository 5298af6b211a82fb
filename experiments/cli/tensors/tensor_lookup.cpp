// Keeps the files open: each of their tensors is read once, whenever its turn comes.
#include "experiments/cli/tensors/tensor_lookup.hpp"

#include <fmt/format.h>

#include <halfscope/core/escape.hpp>
#include <halfscope/io/file.hpp>

namespace halfscope {

TensorLookup::TensorLookup(const std::vector<std::string>& words, const TensorSelection& selection) {
  CheckpointFiles checkpoint(expand_paths(words), selection.raw_type, selection.view);
  if (!checkpoint.paths().problems.empty()) throw InvalidArgument(checkpoint.paths().problems.front());
  for (const std::string& path : checkpoint.paths().files) {
    files_.push_back(select_tensors(path, selection, checkpoint));
    const SelectedFile& file = files_.back();
    for (const auto* const lines : {&file.file->problems(), &std::as_const(file.contradictions)})
      if (!lines->empty()) throw InvalidArgument(lines->front());
    for (const std::size_t index : file.tensors) {
      const std::string& name = file.file->tensors()[index].name;
      const auto [entry, is_new] = by_name_.emplace(name, places_.size());
      if (!is_new) {
        throw InvalidArgument(fmt::format("tensor '{}' is in {} and in {}; give one of the files",
                                          escaped(name), files_[places_[entry->second].file].name,
                                          file.name));
      }
      places_.push_back({files_.size() - 1, index});
    }
  }
  if (places_.empty())
    throw InvalidArgument(files() + ": no tensor of floating-point numbers that is asked for");
}

TensorInFile TensorLookup::at(const Place& place) const {
  const SelectedFile& file = files_[place.file];
  return {*file.file, place.index, file.name};
}

std::vector<TensorInFile> TensorLookup::tensors() const {
  std::vector<TensorInFile> all;
  for (const Place& place : places_) all.push_back(at(place));
  return all;
}

std::optional<TensorInFile> TensorLookup::find(const std::string& name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  used_ = true;
  return at(places_[found->second]);
}

void TensorLookup::require_used() const {
  if (used_) return;
  throw InvalidArgument(
      fmt::format("{}: none of its {} tensors has the name of one that is analysed; the first is '{}'",
                  files(), places_.size(), escaped(by_name_.begin()->first)));
}

std::string TensorLookup::files() const {
  return files_.front().name +
         (files_.size() > 1 ? fmt::format(" and {} more files", files_.size() - 1) : "");
}

}  // namespace halfscope
