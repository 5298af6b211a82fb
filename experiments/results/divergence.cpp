// Tells runs that have a result from those that have none.
#include "experiments/results/divergence.hpp"

#include <nlohmann/json.hpp>

namespace halfscope {
namespace {

/// The metric of the model before its first update; empty where the record does not say.
std::optional<double> initial_value(const Json& summary, const ReportedMetric& metric) {
  const auto found = summary.find(metric.key == "metric" ? "initial_metric" : "initial_loss");
  return found != summary.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

}  // namespace

RunOutcome outcome_of(const FinishedRun& run, const ReportedMetric& metric) {
  if (run.summary["diverged"].get<bool>()) return {.end = RunEnding::broke_down};
  const Json& value = run.summary.at(metric.key);
  if (!value.is_number()) return {};
  const auto number = value.get<double>();
  const std::optional<double> initial = initial_value(run.summary, metric);
  if (metric.lower_is_better && initial && *initial > 0 && number > diverged_multiple * *initial)
    return {.end = RunEnding::beyond};
  return {.value = number};
}

}  // namespace halfscope
