// The files that the words of a command line stand for.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace halfscope {

/// What an index of shards says of one of them.
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

/// The file that has a tensor, by the tensor's name, as the indices in the folder of `file` say.
[[nodiscard]] std::map<std::string, std::string> files_by_indices_beside(const std::string& file);

/// A line where `file` lacks tensors that the index puts into it, and one where it holds others than those.
[[nodiscard]] std::vector<std::string> contradictions(const std::string& file, const IndexEntry& entry,
                                                      const std::set<std::string>& held);

}  // namespace halfscope
