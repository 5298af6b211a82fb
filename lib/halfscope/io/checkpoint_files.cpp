// Opens other files only as long as a file that borrows from them is open.
#include <halfscope/io/checkpoint_files.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include <halfscope/core/error.hpp>
#include <halfscope/io/detail/checkpoint_config.hpp>
#include <halfscope/io/detail/checkpoint_paths.hpp>
#include <halfscope/io/detail/joined_file.hpp>
#include <halfscope/io/file.hpp>

namespace halfscope {
namespace {

std::set<std::string> names_in(const TensorFile& file) {
  std::set<std::string> names;
  for (const StoredTensor& tensor : file.tensors()) names.insert(tensor.name);
  for (const SkippedTensor& skipped : file.skipped()) names.insert(skipped.name);
  return names;
}

/// Throws InvalidArgument for a checkpoint of which every tensor is empty, as ZeRO's third stage saves it.
void refuse_placeholders(const TensorFile& file, const std::string& path) {
  const std::vector<StoredTensor>& tensors = file.tensors();
  const std::string extension = std::filesystem::path(path).extension().string();
  const bool is_of_arrays = extension == ".npy" || extension == ".npz";
  const std::vector<std::int64_t> nothing{0};
  const bool is_empty =
      std::ranges::all_of(tensors, [&](const StoredTensor& tensor) { return tensor.shape == nothing; });
  if (tensors.empty() || !is_empty || is_of_arrays || !file.codes().empty()) return;
  throw InvalidArgument(fmt::format(
      "{}: {} tensor{} without an element, as DeepSpeed's ZeRO-3 saves placeholders; the weights are in "
      "*_optim_states.pt: python zero_to_fp32.py . model.pt in their folder puts them together, and "
      "stage3_gather_16bit_weights_on_model_save saves them whole",
      printable(path), tensors.size(), tensors.size() == 1 ? "" : "s"));
}

}  // namespace

std::optional<std::string> FilesByName::find(const std::string& name, const std::string& partner,
                                             const std::string& path,
                                             const std::function<bool(const std::string&)>& is_taken) const {
  const auto [first, last] = paths_.equal_range(name);
  const auto [first_partner, last_partner] = paths_.equal_range(partner);
  for (auto found = first; found != last; ++found) {
    const auto is_of_file = [&](const auto& entry) { return entry.second == found->second; };
    const bool is_other = found->second != path && (!is_taken || is_taken(found->second));
    if (is_other && std::none_of(first_partner, last_partner, is_of_file)) return found->second;
  }
  return std::nullopt;
}

CheckpointFile CheckpointFiles::open(const std::string& path, const NameFilter& wanted) {
  CheckpointFile opened;
  const NameFilter with_scales = [&](std::string_view name) {
    if (wanted(name)) return true;
    return view_ == QuantizedView::values && std::ranges::any_of(payloads_of(name), wanted);
  };
  std::unique_ptr<TensorFile> file = open_tensor_file(path, raw_type_, wanted ? with_scales : wanted);
  refuse_placeholders(*file, path);
  opened.held = names_in(*file);
  if (const auto entry = paths_.indexed.find(path); entry != paths_.indexed.end())
    opened.contradictions = contradictions(path, entry->second, opened.held);
  const FileBeside find_beside = [&](const std::string& name,
                                     const std::string& partner) -> std::optional<OtherFile> {
    const auto found = beside(path).find(name, partner, path);
    if (!found) return std::nullopt;
    return OtherFile{printable(*found), are_shards(path, *found)};
  };
  opened.file = show_quantized(complete(std::move(file), path), printable(path),
                               {.view = view_, .stated = quantization_beside(path), .beside = find_beside});
  return opened;
}

std::unique_ptr<TensorFile> CheckpointFiles::complete(std::unique_ptr<TensorFile> file,
                                                      const std::string& path) {
  if (paths_.files.size() < 2 || view_ == QuantizedView::payload) return file;
  const AbsentParts absent = absent_parts(*file);
  std::vector<LentPart> parts;
  for (const auto& [scales, payload] : absent.scales)
    if (auto other = other_with(scales, payload, path)) parts.push_back({std::move(other), scales});
  std::set<std::string> payloads;
  for (const auto& [payload, scales] : absent.payloads) {
    const auto other = other_with(payload, scales, path);
    if (other && has_payload(*other, payload)) payloads.insert(payload);
  }
  if (parts.empty() && payloads.empty()) return file;
  return join_parts(std::move(file), std::move(parts), payloads);
}

/// The file of `paths` that FilesByName finds; null where there is none.
std::shared_ptr<const TensorFile> CheckpointFiles::other_with(const std::string& name,
                                                              const std::string& partner,
                                                              const std::string& path) {
  if (!given_) given_ = names_of(paths_.files);
  const auto found =
      given_->find(name, partner, path, [&](const std::string& other) { return are_shards(path, other); });
  if (!found) return nullptr;
  std::weak_ptr<const TensorFile>& known = open_[*found];
  std::shared_ptr<const TensorFile> file = known.lock();
  if (!file) known = file = open_tensor_file(*found, raw_type_);
  return file;
}

/// Files that cannot be read have no names: their own line says why, where they are given.
FilesByName CheckpointFiles::names_of(const std::vector<std::string>& files) const {
  FilesByName found;
  for (const std::string& path : files) {
    try {
      for (const std::string& name : names_in(*open_tensor_file(path, raw_type_))) found.add(name, path);
    } catch (const InvalidArgument&) {
      continue;
    }
  }
  return found;
}

bool CheckpointFiles::are_shards(const std::string& path, const std::string& other) {
  return checkpoint_of(path) == checkpoint_of(other);
}

const std::string& CheckpointFiles::checkpoint_of(const std::string& path) {
  const auto [known, is_new] = checkpoints_.try_emplace(path);
  if (!is_new) return known->second;
  const auto entry = paths_.indexed.find(path);
  known->second = entry != paths_.indexed.end() ? entry->second.index : checkpoint_named_by(path);
  return known->second;
}

const FilesByName& CheckpointFiles::beside(const std::string& path) {
  const std::filesystem::path file = path;
  const auto [known, is_new] = beside_.try_emplace((file.parent_path() / file.extension()).string());
  if (is_new) {
    auto indexed = files_by_indices_beside(path);
    known->second = indexed ? *std::move(indexed) : names_of(files_like_it_beside(path));
  }
  return known->second;
}

}  // namespace halfscope
