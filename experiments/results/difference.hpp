// Difference of two arms over their seeds, with its 95 % interval.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include <halfscope/core/names.hpp>

#include "experiments/results/summary.hpp"

namespace halfscope {

/// How the seeds of two arms are set beside each other: a pair for each seed that both have, or, where they
/// share fewer than two, as independent samples.
enum class Pairing : std::uint8_t { by_seed, independent };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<Pairing>{"by_seed", "independent"};

/// How far an arm ends behind its baseline; below 0 where it is ahead. In the metric's unit; a share of the
/// baseline where the metric is compared by ratio, from the geometric mean of the ratios where all values are
/// positive. A run that diverged has no number: mean and interval are over those that finished.
struct Difference {
  Pairing pairing = Pairing::by_seed;
  std::int64_t seeds = 0;               ///< compared: pairs, or the smaller of two samples
  std::int64_t arm_diverged_alone = 0;  ///< seeds in which the arm diverged and its baseline did not
  std::int64_t baseline_diverged_alone = 0;
  std::optional<double> behind{};       ///< mean
  std::optional<double> low{}, high{};  ///< 95 % interval, Student's or Welch's; from two pairs on
};

/// Half the width of the interval: the smallest difference that the seeds tell from none. Empty without one.
[[nodiscard]] inline std::optional<double> detectable(const Difference& difference) {
  if (!difference.low || !difference.high) return std::nullopt;
  return (*difference.high - *difference.low) / 2;
}

/// Empty difference of 0 seeds where the seeds of an arm differ in their settings.
[[nodiscard]] Difference difference_of(const ReportedMetric& metric, const ArmSummary& arm,
                                       const ArmSummary& baseline);

}  // namespace halfscope
