// Reads watched steps, and takes a number of each at a scale.
#include "experiments/analyses/harm_predictors.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include <halfscope/io/json/histogram_json.hpp>
#include <halfscope/stats/what_if.hpp>

#include "experiments/results/records_file.hpp"

namespace halfscope {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

ProbedError probed_error_of(const Json& probe) {
  const Json& error = probe.at("error");
  return {probe.at("scale").get<double>(), error.is_null() ? infinity : error.get<double>()};
}

bool overflows(const WatchedStep& step, int scale_log2) {
  return std::any_of(step.gradients.begin(), step.gradients.end(), [&](const WatchedGradient& gradient) {
    return what_if(gradient.histogram, scale_log2).overflow > 0;
  });
}

/// `value` of a step whose gradients do not overflow; empty without records of gradients.
template <typename Value>
std::optional<double> unless_overflow(const WatchedStep& step, int scale_log2, Value&& value) {
  if (step.gradients.empty()) return std::nullopt;
  return overflows(step, scale_log2) ? infinity : value();
}

/// Share of a gradient that a cast at a scale takes.
using Share = double (*)(const ExponentHistogram& gradient, int scale_log2);

/// The largest of the activation gradients.
std::optional<double> worst_share(const WatchedStep& step, int scale_log2, Share share) {
  return unless_overflow(step, scale_log2, [&] {
    double worst = 0;
    for (const WatchedGradient& gradient : step.gradients)
      if (gradient.role == Role::activation_gradient)
        worst = std::max(worst, share(gradient.histogram, scale_log2));
    return worst;
  });
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// How many of `all` numbers that are uniform in a binade have this fraction field or a larger one.
std::int64_t expected_from(std::uint32_t fraction, std::int64_t all) {
  return std::llround(std::ldexp((0x1p23 - fraction) * static_cast<double>(all), -23));
}

/// For a cast to `format`.
ExponentHistogram counted_for(const ExponentHistogram& histogram, const FloatFormat& format) {
  HistogramCounts counts = histogram.counts();
  const BinadeEdges edges = binade_edges(format);
  if (edges != binade_edges(histogram.format())) {
    for (BinadeCounts& binade : counts.binades) {
      binade.rounds_to_overflow = expected_from(edges.rounds_to_overflow, binade.all);
      binade.rounds_to_normal = expected_from(edges.rounds_to_normal, binade.all);
    }
  }
  return ExponentHistogram(counts, format);
}

/// Steps of a run by their number.
using StepsByNumber = std::map<std::int64_t, WatchedStep>;

/// Counted for a cast to `format`; records of other tensors than gradients are left out.
void add_gradient(const Json& record, const FloatFormat& format, StepsByNumber& steps) {
  const auto& role = record.at("role").get_ref<const std::string&>();
  if (role != name_of(Role::activation_gradient) && role != name_of(Role::weight_gradient)) return;
  steps[record.at("step").get<std::int64_t>()].gradients.push_back(
      {parse_enum<Role>("role", role), counted_for(histogram_of(record), format)});
}

std::vector<WatchedStep> in_order(StepsByNumber steps) {
  std::vector<WatchedStep> all;
  all.reserve(steps.size());
  for (auto& [number, step] : steps) {
    step.step = number;
    all.push_back(std::move(step));
  }
  return all;
}

}  // namespace

std::vector<WatchedStep> read_watched_steps(const std::filesystem::path& folder, const FloatFormat& format) {
  StepsByNumber steps;
  read_records(folder / "histograms.jsonl", [&](const Json& record) {
    add_gradient(record, format, steps);
    return Reading::continues;
  });
  read_records(folder / "metrics.jsonl", [&](const Json& record) {
    if (!record.contains("probes")) return Reading::continues;
    std::vector<ProbedError>& probes = steps[record.at("step").get<std::int64_t>()].probes;
    for (const Json& probe : record["probes"]) probes.push_back(probed_error_of(probe));
    return Reading::continues;
  });
  return in_order(std::move(steps));
}

std::vector<WatchedStep> kept_steps(const RunRecords& records, const std::string& arm, std::int64_t seed) {
  StepsByNumber steps;
  records.each_histogram(arm, seed, [&](const Json& record) {
    add_gradient(record, fp16, steps);
    return Reading::continues;
  });
  return in_order(std::move(steps));
}

std::vector<TensorFit> fits_over(const std::vector<std::span<const WatchedStep>>& runs) {
  std::vector<std::vector<TensorFit>> by_tensor;
  for (const std::span<const WatchedStep> steps : runs) {
    for (const WatchedStep& step : steps) {
      by_tensor.resize(std::max(by_tensor.size(), step.gradients.size()));
      for (std::size_t i = 0; i < step.gradients.size(); ++i)
        by_tensor[i].push_back(fit_tensor(std::to_string(i), step.gradients[i].histogram));
    }
  }
  std::vector<TensorFit> fits;
  fits.reserve(by_tensor.size());
  for (const auto& own : by_tensor) fits.push_back(merge_fits(own));
  return fits;
}

Advice advice_on(const RunRecords& records, const std::string& arm) {
  std::vector<std::vector<WatchedStep>> runs;
  for (const std::int64_t seed : records.seeds(arm)) runs.push_back(kept_steps(records, arm, seed));
  return advise(fits_over({runs.begin(), runs.end()}), fp16);
}

std::optional<double> flushed_share(const WatchedStep& step, int scale_log2) {
  return unless_overflow(step, scale_log2, [&] {
    double flushed = 0, nonzero = 0;
    for (const WatchedGradient& gradient : step.gradients) {
      if (gradient.role != Role::activation_gradient) continue;
      const WhatIf counts = what_if(gradient.histogram, scale_log2);
      flushed += static_cast<double>(counts.flushed);
      nonzero += static_cast<double>(counts.nonzero);
    }
    return nonzero == 0 ? 0 : flushed / nonzero;
  });
}

std::optional<double> worst_flushed_magnitude(const WatchedStep& step, int scale_log2) {
  return worst_share(step, scale_log2, flushed_magnitude);
}

std::optional<double> worst_underflow(const WatchedStep& step, int scale_log2) {
  return worst_share(step, scale_log2, underflow_error);
}

std::optional<double> summed_underflow(const WatchedStep& step, int scale_log2) {
  return unless_overflow(step, scale_log2, [&] {
    double squares = 0;
    std::vector<double> of_weights;
    for (const WatchedGradient& gradient : step.gradients) {
      if (gradient.role == Role::activation_gradient) {
        squares += std::pow(underflow_error(gradient.histogram, scale_log2), 2);
      } else {
        of_weights.push_back(std::sqrt(squares));
      }
    }
    return median(std::move(of_weights));
  });
}

std::optional<double> probed_error(const WatchedStep& step, int scale_log2) {
  const double scale = std::ldexp(1.0, scale_log2);
  const auto found = std::find_if(step.probes.begin(), step.probes.end(),
                                  [&](const ProbedError& probe) { return probe.scale == scale; });
  return found == step.probes.end() ? std::nullopt : std::optional(found->error);
}

}  // namespace halfscope
