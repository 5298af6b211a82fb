// Report of one tensor: a cast at scale 1, and the scales that fit; a line of `halfscope analyze`.
#pragma once

#include <halfscope/scaling/advisor.hpp>
#include <halfscope/stats/tensor_summary.hpp>
#include <halfscope/stats/what_if.hpp>

namespace halfscope {

struct TensorReport {
  std::string name;
  WhatIf counts;
  std::int64_t zeros = 0;
  std::int64_t nonfinite = 0;
  float max_abs = 0;
  double lost_energy = 0;        ///< share of the sum of squares that is flushed
  std::optional<double> cosine;  ///< between the tensor and what the cast leaves; see TensorSummary::cosine
  TensorFit fit;
};

[[nodiscard]] TensorReport report_tensor(std::string name, const TensorSummary& summary,
                                         const AdvisorOptions& options = {});

}  // namespace halfscope
