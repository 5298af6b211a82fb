// Tensors and files that a walk left out, as text and as JSON.
#pragma once

#include <halfscope/io/json/json_lines.hpp>

#include "experiments/cli/tensors/tensor_files.hpp"

namespace halfscope {

/// For the terminal: tensors that were skipped, and files of a folder that are not read.
[[nodiscard]] std::string not_read_text(const FilesRead& read, std::size_t width);

/// Adds the number of files, the tensors that were skipped, and files of a folder that are not read.
void add_files_json(Json& json, const FilesRead& read);

}  // namespace halfscope
