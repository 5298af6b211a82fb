// Reads thresholds and holds them against the reports.
#include "experiments/cli/analyze/analyze_findings.hpp"

#include <fmt/format.h>

#include <array>

#include <halfscope/core/name_list.hpp>
#include <halfscope/core/names.hpp>

#include "experiments/cli/tensors/tensor_options.hpp"

namespace halfscope {
namespace {

double share(std::int64_t count, std::int64_t total) {
  return total == 0 ? 0 : static_cast<double>(count) / static_cast<double>(total);
}

using Share = std::optional<double>;

/// `share` of a tensor that has finite elements.
Share of_finite(const AnalyzedTensor& t, double share) {
  return t.report.counts.elements > t.report.nonfinite ? Share(share) : std::nullopt;
}

Share of_all(const AnalyzedTensor& t, std::int64_t count) {
  return t.report.counts.elements > 0 ? Share(t.report.counts.of_all(count)) : std::nullopt;
}

/// Measures of a tensor, one line each; one of the two functions is there. Nothing where the tensor
/// has no elements to judge by.
struct FindingMetric {
  std::string_view name;
  Share (*of_tensor)(const AnalyzedTensor&);
  Share (*of_update)(const UpdateReport&);
};
constexpr std::array metrics{
    FindingMetric{"flushed",
                  [](const AnalyzedTensor& t) { return of_finite(t, t.report.counts.flushed_fraction()); },
                  nullptr},
    FindingMetric{"subnormal",
                  [](const AnalyzedTensor& t) { return of_finite(t, t.report.counts.subnormal_fraction()); },
                  nullptr},
    FindingMetric{"overflow",
                  [](const AnalyzedTensor& t) { return of_finite(t, t.report.counts.overflow_fraction()); },
                  nullptr},
    FindingMetric{"zeros", [](const AnalyzedTensor& t) { return of_all(t, t.report.zeros); }, nullptr},
    FindingMetric{"nonfinite", [](const AnalyzedTensor& t) { return of_all(t, t.report.nonfinite); },
                  nullptr},
    FindingMetric{"lost_energy", [](const AnalyzedTensor& t) { return of_finite(t, t.report.lost_energy); },
                  nullptr},
    FindingMetric{
        "relative_error",
        [](const AnalyzedTensor& t) { return t.reference ? t.reference->relative_error() : std::nullopt; },
        nullptr},
    FindingMetric{"lost_updates", nullptr, lost_updates_share},
};

}  // namespace

std::optional<double> lost_updates_share(const UpdateReport& update) {
  const LostUpdates& counts = update.counts;
  if (counts.elements == counts.nonfinite) return std::nullopt;
  return share(counts.lost, counts.nonzero - counts.nonfinite);
}

Threshold parse_threshold(std::string_view option, std::string_view text) {
  const std::size_t at = text.find('>');
  if (at == std::string_view::npos) {
    throw InvalidArgument(fmt::format(
        "{} '{}': give METRIC>SHARE or METRIC>=SHARE, such as 'flushed>2%'; a metric is one of {}", option,
        text, threshold_metrics()));
  }
  const bool or_equal = text.substr(at + 1).starts_with('=');
  const FindingMetric& metric =
      find_in_table(fmt::format("metric of {}", option), trimmed(text.substr(0, at)), metrics);
  return {.text = std::string(text),
          .metric = std::string(metric.name),
          .comparator = or_equal ? Comparator::at_least : Comparator::above,
          .share = parse_share(option, text.substr(at + (or_equal ? 2 : 1)))};
}

std::string threshold_metrics() {
  std::string names;
  for (const FindingMetric& metric : metrics)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", metric.name);
  return names;
}

bool is_of_updates(const Threshold& threshold) {
  return find_in_table("metric", threshold.metric, metrics).of_update != nullptr;
}

std::optional<double> value_of(const Threshold& threshold, const AnalyzedTensor& tensor) {
  const FindingMetric& metric = find_in_table("metric", threshold.metric, metrics);
  return metric.of_tensor != nullptr ? metric.of_tensor(tensor) : std::nullopt;
}

ThresholdResult judge(const Threshold& threshold, const Analysis& analysis) {
  ThresholdResult judgement;
  const auto take = [&](const std::string& name, const Share& value) {
    if (!value) return;
    ++judgement.judged;
    if (threshold.is_reached(*value)) judgement.over.push_back({name, *value});
  };
  const FindingMetric& metric = find_in_table("metric", threshold.metric, metrics);
  if (metric.of_update != nullptr) {
    for (const UpdateReport& update : analysis.updates) take(update.name, metric.of_update(update));
  } else {
    for (const AnalyzedTensor& tensor : analysis.tensors) take(tensor.report.name, metric.of_tensor(tensor));
  }
  return judgement;
}

}  // namespace halfscope
