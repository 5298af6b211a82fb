// How a run ended: with a value, broken down, or so far beyond the untrained model that its value says
// nothing.
#pragma once

#include <optional>

#include "experiments/definition/reported_metric.hpp"
#include "experiments/results/run_records.hpp"

namespace halfscope {

/// A run whose metric, of those that are better lower, ends at more than this many times the untrained
/// model's counts as diverged: a mean over seeds with it would be its value alone.
inline constexpr double diverged_multiple = 10;

enum class RunEnding : std::uint8_t {
  finished,
  broke_down,  ///< an infinity or a NaN reached the weights, or the metric
  beyond,      ///< beyond `diverged_multiple` times the untrained model's metric
};

struct RunOutcome {
  std::optional<double> value{};  ///< the metric of a run that finished
  RunEnding end = RunEnding::finished;
};

/// The outcome by the metric's key in the run's summary, which notes the untrained model's as initial_metric
/// or initial_loss; a run without such a note is judged by its numbers being finite alone.
[[nodiscard]] RunOutcome outcome_of(const FinishedRun& run, const ReportedMetric& metric);

}  // namespace halfscope
