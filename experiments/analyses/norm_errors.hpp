// Statistics of batch norm by length, format and mean of the numbers, beside their closed form.
#pragma once

#include <cstdint>
#include <span>

#include "experiments/results/analysis_result.hpp"

namespace halfscope {

/// A table of computed variances over exact ones, of numbers that are drawn, and a clause on how many the
/// closed form has.
[[nodiscard]] AnalysisResult find_norm_errors(std::span<const std::int64_t> lengths);

}  // namespace halfscope
