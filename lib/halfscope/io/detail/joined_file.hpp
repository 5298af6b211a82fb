// Payload and scales of quantized tensors that were sharded apart.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// A tensor of scales in another file than its payload.
struct LentPart {
  std::shared_ptr<const TensorFile> file;
  std::string name;
};

/// Names of parts of `file`'s quantized tensors that are not in it, each beside that of a part that is.
struct AbsentParts {
  std::vector<std::pair<std::string, std::string>>
      scales;                                   ///< and payload, under all names that its parts may have
  std::map<std::string, std::string> payloads;  ///< and the first part
};
[[nodiscard]] AbsentParts absent_parts(const TensorFile& file);

/// Names of the payloads that a tensor of that name may be a part of.
[[nodiscard]] std::vector<std::string> payloads_of(std::string_view name);

/// Whether `file` has codes of that name, which scales may multiply.
[[nodiscard]] bool has_payload(const TensorFile& file, std::string_view name);

/// `file` with `parts` of other files, and without its own scales of `payloads`, which are in other files.
[[nodiscard]] std::unique_ptr<TensorFile> join_parts(std::unique_ptr<TensorFile> file,
                                                     std::vector<LentPart> parts,
                                                     const std::set<std::string>& payloads);

}  // namespace halfscope
