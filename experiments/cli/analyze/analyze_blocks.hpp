// Findings about the blocks of quantized tensors: which are damaged, and counts of each kind.
#pragma once

#include <string>

#include <halfscope/io/json/json_lines.hpp>

#include "experiments/cli/analyze/analyze_view.hpp"

namespace halfscope {

/// For the terminal: a line for each damaged tensor with what to do, then counts; empty without quantized
/// tensors.
[[nodiscard]] std::string blocks_text(const Analysis& analysis, const View& view, std::size_t width);
/// The layout, the number of blocks, and a count with the first indices for each kind.
[[nodiscard]] Json blocks_json(const BlockFindings& found);

}  // namespace halfscope
