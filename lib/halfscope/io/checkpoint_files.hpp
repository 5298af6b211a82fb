// Files of a checkpoint: the paths that words stand for, and quantized tensors put together across files.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <halfscope/io/quantized_file.hpp>
#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// Tensors of a shard, as an index lists them.
struct IndexEntry {
  std::string index;  ///< its path, for messages
  std::set<std::string> tensors;
};

/// A file of a folder that holds tensors and is not read.
struct FileNotRead {
  std::string file, reason;
};

struct ExpandedPaths {
  std::vector<std::string> files;
  std::vector<FileNotRead> not_read;
  std::vector<std::string> problems;          ///< a line for each part of a folder that cannot be read
  std::map<std::string, IndexEntry> indexed;  ///< by file
};

/// A word is a file, a folder (all files of tensors in it and below, see look_at_file, by name; hidden ones
/// and links to folders are left out), a glob that the shell did not expand, or an index of safetensors
/// shards (model.safetensors.index.json). Indices in a folder count too. A file that several words stand for
/// comes once, where it came first. Throws InvalidArgument for a word that stands for no file.
[[nodiscard]] ExpandedPaths expand_paths(const std::vector<std::string>& words);

struct CheckpointFile {
  std::unique_ptr<QuantizedFile> file;
  std::set<std::string> held;  ///< names of all that the file holds, what cannot be read of it too
  std::vector<std::string> contradictions;  ///< a line for each between the file and its index
};

/// The files that have a tensor, by the tensor's name.
class FilesByName {
 public:
  void add(std::string name, std::string path) { paths_.emplace(std::move(name), std::move(path)); }
  /// The first file other than `path` that has `name` and lacks `partner`: one that has both is whole.
  /// Files that `is_taken`, where given, refuses are passed over.
  [[nodiscard]] std::optional<std::string> find(
      const std::string& name, const std::string& partner, const std::string& path,
      const std::function<bool(const std::string&)>& is_taken = {}) const;

 private:
  std::multimap<std::string, std::string> paths_;
};

/// Opens files one by one. A quantized tensor whose payload and scales lie in two of `paths` is in the file
/// of its payload, where the two are shards: an index names both, or their names are numbered
/// (-00001-of-00002). Its parts are left out, with a line in QuantizedFile::problems, where one of them lies
/// in a shard that is not given, or in a file of the same kind beside that is not known to be one. A file
/// that has both parts lends none.
class CheckpointFiles {
 public:
  explicit CheckpointFiles(ExpandedPaths paths, const StatedType& raw_type = {},
                           QuantizedView view = QuantizedView::values)
      : paths_(std::move(paths)), raw_type_(raw_type), view_(view) {}

  [[nodiscard]] const ExpandedPaths& paths() const { return paths_; }

  /// Opens one of the paths; for `wanted` see open_tensor_file, scales come with their payload. Throws
  /// InvalidArgument where it, or the file that has its scales, cannot be read.
  [[nodiscard]] CheckpointFile open(const std::string& path, const NameFilter& wanted = {});

 private:
  [[nodiscard]] std::unique_ptr<TensorFile> complete(std::unique_ptr<TensorFile> file,
                                                     const std::string& path);
  [[nodiscard]] std::shared_ptr<const TensorFile> other_with(const std::string& name,
                                                             const std::string& partner,
                                                             const std::string& path);
  [[nodiscard]] FilesByName names_of(const std::vector<std::string>& files) const;
  /// Files beside `path` by the names of its indices, or without one by their own.
  [[nodiscard]] const FilesByName& beside(const std::string& path);
  /// Whether an index or their names say that the two files are of one checkpoint.
  [[nodiscard]] bool are_shards(const std::string& path, const std::string& other);
  [[nodiscard]] const std::string& checkpoint_of(const std::string& path);

  ExpandedPaths paths_;
  StatedType raw_type_;
  QuantizedView view_;
  std::optional<FilesByName> given_{};                ///< names in `paths_`, once they are asked for
  std::map<std::string, FilesByName> beside_{};       ///< by folder and extension
  std::map<std::string, std::string> checkpoints_{};  ///< see checkpoint_of
  std::map<std::string, std::weak_ptr<const TensorFile>> open_{};  ///< by path, while a file borrows from it
};

}  // namespace halfscope
