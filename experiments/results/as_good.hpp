// Whether an arm ends as good as its baseline: one definition, for claims, reports and figures.
#pragma once

#include <optional>

#include "experiments/results/summary.hpp"

namespace halfscope {

/// Shares of a baseline's metric that a harmless arm may be behind where no claim says how much: as far as
/// the baseline's own 95 % interval reaches, but the first at least and the second at most. Trainings that
/// round differently and lose nothing scatter by up to 3 %.
inline constexpr double least_tolerated = 0.02, most_tolerated = 0.05;

/// Whether the expectation holds; empty where an arm of it has no result, or its baseline's spread is asked
/// for and a single seed has none.
[[nodiscard]] std::optional<bool> holds(const ExperimentSummary& summary, const Expectation& expectation);

/// Whether `arm` ends as good as its baseline: within the claim's tolerance where it has one for the arm.
/// Empty without a baseline or its mean.
[[nodiscard]] std::optional<bool> as_good(const Experiment& experiment, const ExperimentSummary& summary,
                                          const ArmSummary& arm);

/// The distance between the best and the worst seed of an arm; empty below two that did not diverge.
[[nodiscard]] std::optional<double> seed_spread(const ArmSummary& arm);

}  // namespace halfscope
