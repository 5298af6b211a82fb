// Parts of JSON documents that every analysis has.
#pragma once

#include <halfscope/io/json/json_lines.hpp>

#include "experiments/cli/analyze/analyze.hpp"

namespace halfscope {

/// Adds the number of files, the tensors that were skipped, and files of a folder that are not read.
void add_files_json(Json& json, const Analysis& analysis);

}  // namespace halfscope
