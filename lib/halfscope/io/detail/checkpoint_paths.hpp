// Files that lie beside a file of a checkpoint, and indices that name them.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <halfscope/io/checkpoint_files.hpp>

namespace halfscope {

/// The file that has a tensor, by the tensor's name, as the indices in the folder of `file` say; nothing
/// where there is no index.
[[nodiscard]] std::optional<FilesByName> files_by_indices_beside(const std::string& file);

/// All files of tensors in the folder of `file` that have its extension, by name.
[[nodiscard]] std::vector<std::string> files_like_it_beside(const std::string& file);

/// A name of the checkpoint that `file` is a shard of: its numbered names without the number
/// (model-00001-of-00002), the index in its folder that names it, or the file itself.
[[nodiscard]] std::string checkpoint_named_by(const std::string& file);

/// A line where `file` lacks tensors that the index puts into it, and one where it holds others than those.
[[nodiscard]] std::vector<std::string> contradictions(const std::string& file, const IndexEntry& entry,
                                                      const std::set<std::string>& held);

}  // namespace halfscope
