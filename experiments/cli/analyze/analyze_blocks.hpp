// Findings about the blocks of quantized tensors: which are damaged, and counts of each kind.
#pragma once

#include <string>

#include <halfscope/io/json/json_lines.hpp>

#include "experiments/cli/analyze/analyze_view.hpp"

namespace halfscope {

/// The verdict on quantized tensors in one line: each damage with what to do first, or that there is none.
[[nodiscard]] std::string blocks_verdict(const Analysis& analysis);
/// The same, a line each.
[[nodiscard]] std::string damage_lines(const Analysis& analysis, std::size_t width);
/// For the terminal: the verdict, then counts; empty without quantized tensors.
[[nodiscard]] std::string blocks_text(const Analysis& analysis, const View& view, std::size_t width);
/// The layout, the number of blocks, and for each kind a count, the first indices and how many are left out.
[[nodiscard]] Json blocks_json(const BlockFindings& found);

}  // namespace halfscope
