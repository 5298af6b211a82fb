// Reads thresholds and holds them against the reports.
#include "experiments/cli/analyze/analyze_findings.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include <halfscope/core/names.hpp>

namespace halfscope {
namespace {

double share(std::int64_t count, std::int64_t total) {
  return total == 0 ? 0 : static_cast<double>(count) / static_cast<double>(total);
}

/// What can be asked of a tensor, one line each; one of the two functions is there.
struct Metric {
  std::string_view name;
  double (*of_tensor)(const TensorReport&);
  double (*of_update)(const UpdateReport&);
};
constexpr std::array metrics{
    Metric{"flushed", [](const TensorReport& t) { return t.counts.flushed_fraction(); }, nullptr},
    Metric{"subnormal", [](const TensorReport& t) { return t.counts.subnormal_fraction(); }, nullptr},
    Metric{"overflow", [](const TensorReport& t) { return t.counts.overflow_fraction(); }, nullptr},
    Metric{"zeros", [](const TensorReport& t) { return t.counts.of_all(t.zeros); }, nullptr},
    Metric{"nonfinite", [](const TensorReport& t) { return t.counts.of_all(t.nonfinite); }, nullptr},
    Metric{"lost_energy", [](const TensorReport& t) { return t.lost_energy; }, nullptr},
    Metric{"lost_updates", nullptr,
           [](const UpdateReport& u) { return share(u.counts.lost, u.counts.nonzero); }},
};

std::string_view trim(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

double parse_share(std::string_view what, std::string_view text) {
  std::string_view number = trim(text);
  const bool percent = number.ends_with('%');
  if (percent) number = trim(number.substr(0, number.size() - 1));
  // "0.1%" is read as 0.1e-2: the double next to 1/1000, which is what a share of 1 in 1000 compares with.
  const bool plain = number.find_first_not_of("0123456789.") == std::string_view::npos && !number.empty();
  const std::string digits = std::string(number) + (percent ? "e-2" : "");
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool read = plain && error == std::errc{} && end == digits.data() + digits.size();
  if (!read || value > 1) {
    throw InvalidArgument(
        fmt::format("{}: '{}' is no share; give one from 0 to 1, such as 0.02 or 2%", what, text));
  }
  return value;
}

Threshold parse_threshold(std::string_view text) {
  const std::size_t at = text.find('>');
  if (at == std::string_view::npos) {
    throw InvalidArgument(fmt::format(
        "--fail-on '{}': give METRIC>SHARE or METRIC>=SHARE, such as 'flushed>2%'; a metric is one of {}",
        text, threshold_metrics()));
  }
  const bool or_equal = text.substr(at + 1).starts_with('=');
  const Metric& metric = find_in_table("metric of --fail-on", trim(text.substr(0, at)), metrics);
  return {.text = std::string(text),
          .metric = std::string(metric.name),
          .comparator = or_equal ? Comparator::at_least : Comparator::above,
          .share = parse_share("--fail-on", text.substr(at + (or_equal ? 2 : 1)))};
}

std::string threshold_metrics() {
  std::string names;
  for (const Metric& metric : metrics) names += fmt::format("{}{}", names.empty() ? "" : ", ", metric.name);
  return names;
}

std::vector<OverThreshold> find_over(const Threshold& threshold, const Analysis& analysis) {
  const Metric& metric = find_in_table("metric", threshold.metric, metrics);
  std::vector<OverThreshold> findings;
  const auto judge = [&](const std::string& name, double value) {
    if (threshold.is_reached(value)) findings.push_back({name, value});
  };
  if (metric.of_tensor != nullptr) {
    for (const TensorReport& tensor : analysis.tensors) judge(tensor.name, metric.of_tensor(tensor));
  } else {
    for (const UpdateReport& update : analysis.updates) judge(update.name, metric.of_update(update));
  }
  return findings;
}

}  // namespace halfscope
