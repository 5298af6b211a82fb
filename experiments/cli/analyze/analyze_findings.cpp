// Reads thresholds and holds them against the reports.
#include "experiments/cli/analyze/analyze_findings.hpp"

#include <fmt/format.h>

#include <array>

#include <halfscope/core/name_list.hpp>
#include <halfscope/core/names.hpp>

#include "experiments/cli/tensors/tensor_options.hpp"

namespace halfscope {
namespace {

using Share = std::optional<double>;

/// `share` of a tensor that has finite elements.
Share of_finite(const AnalyzedTensor& t, double share) {
  return t.report.counts.elements > t.report.nonfinite ? Share(share) : std::nullopt;
}

Share of_all(const AnalyzedTensor& t, std::int64_t count) {
  return t.report.counts.elements > 0 ? Share(t.report.counts.of_all(count)) : std::nullopt;
}

/// Measures of a tensor, one line each. Nothing where the tensor has no elements to judge by.
struct FindingMetric {
  std::string_view name;
  Share (*of_tensor)(const AnalyzedTensor&);
};
constexpr std::array metrics{
    FindingMetric{"flushed",
                  [](const AnalyzedTensor& t) { return of_finite(t, t.report.counts.flushed_fraction()); }},
    FindingMetric{"subnormal",
                  [](const AnalyzedTensor& t) { return of_finite(t, t.report.counts.subnormal_fraction()); }},
    FindingMetric{"overflow",
                  [](const AnalyzedTensor& t) { return of_finite(t, t.report.counts.overflow_fraction()); }},
    FindingMetric{"zeros", [](const AnalyzedTensor& t) { return of_all(t, t.report.zeros); }},
    FindingMetric{"nonfinite", [](const AnalyzedTensor& t) { return of_all(t, t.report.nonfinite); }},
    FindingMetric{"lost_energy", [](const AnalyzedTensor& t) { return of_finite(t, t.report.lost_energy); }},
    FindingMetric{
        "relative_error",
        [](const AnalyzedTensor& t) { return t.reference ? t.reference->relative_error() : std::nullopt; }},
};

}  // namespace

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

std::optional<double> value_of(const Threshold& threshold, const AnalyzedTensor& tensor) {
  return find_in_table("metric", threshold.metric, metrics).of_tensor(tensor);
}

ThresholdResult judge(const Threshold& threshold, const Analysis& analysis) {
  ThresholdResult judgement;
  const FindingMetric& metric = find_in_table("metric", threshold.metric, metrics);
  for (const AnalyzedTensor& tensor : analysis.tensors) {
    const Share value = metric.of_tensor(tensor);
    if (!value) continue;
    ++judgement.judged;
    if (threshold.is_reached(*value)) judgement.over.push_back({tensor.report.name, *value});
  }
  return judgement;
}

}  // namespace halfscope
