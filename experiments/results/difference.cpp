// Pairs seeds, and takes Student's interval of their differences.
#include "experiments/results/difference.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <halfscope/stats/confidence.hpp>

namespace halfscope {
namespace {

using Value = std::optional<double>;

struct Pair {
  Value arm, baseline;
};

double average_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<Pair> pairs_by_seed(const ArmSummary& arm, const ArmSummary& baseline) {
  std::map<std::int64_t, Value> theirs;
  for (std::size_t i = 0; i < baseline.seeds.size(); ++i) theirs[baseline.seeds[i]] = baseline.values[i];
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < arm.seeds.size(); ++i) {
    const auto found = theirs.find(arm.seeds[i]);
    if (found != theirs.end()) pairs.push_back({arm.values[i], found->second});
  }
  return pairs;
}

/// The first of one beside the first of the other: any pairing of independent samples is as good.
std::vector<Pair> pairs_in_order(const ArmSummary& arm, const ArmSummary& baseline) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < std::min(arm.values.size(), baseline.values.size()); ++i)
    pairs.push_back({arm.values[i], baseline.values[i]});
  return pairs;
}

/// Values of the two arms in which a difference is taken, and back.
class Scale {
 public:
  Scale(const ReportedMetric& metric, const std::vector<double>& arm, const std::vector<double>& baseline)
      : sign_(metric.lower_is_better ? 1 : -1), ratio_(metric.comparison == Comparison::ratio) {
    const auto positive = [](double value) { return value > 0; };
    logarithm_ = ratio_ && std::ranges::all_of(arm, positive) && std::ranges::all_of(baseline, positive);
    if (ratio_ && !logarithm_) unit_ = std::fabs(average_of(baseline));
  }

  [[nodiscard]] std::vector<double> in(std::vector<double> values) const {
    for (double& value : values) value = logarithm_ ? std::log(value) : value / unit_;
    return values;
  }

  /// The difference of the arm from its baseline as how far it is behind.
  [[nodiscard]] double behind(double difference) const {
    return sign_ * (logarithm_ ? std::expm1(difference) : difference);
  }

 private:
  double sign_ = 1, unit_ = 1;
  bool ratio_ = false, logarithm_ = false;
};

struct Samples {
  std::vector<double> arm, baseline;
};

Samples finished_pairs(const std::vector<Pair>& pairs) {
  Samples samples;
  for (const Pair& pair : pairs) {
    if (!pair.arm || !pair.baseline) continue;
    samples.arm.push_back(*pair.arm);
    samples.baseline.push_back(*pair.baseline);
  }
  return samples;
}

std::vector<double> finished(const std::vector<Value>& values) {
  std::vector<double> numbers;
  for (const Value& value : values)
    if (value) numbers.push_back(*value);
  return numbers;
}

/// Empty where there is no interval.
std::optional<double> half_width_of(Pairing pairing, const Samples& samples) {
  if (std::min(samples.arm.size(), samples.baseline.size()) < 2) return std::nullopt;
  if (pairing == Pairing::independent) return welch_95(samples.arm, samples.baseline);
  std::vector<double> differences;
  for (std::size_t i = 0; i < samples.arm.size(); ++i)
    differences.push_back(samples.arm[i] - samples.baseline[i]);
  return confidence_95(differences);
}

void add_interval(const ReportedMetric& metric, const Samples& samples, Difference& difference) {
  if (samples.arm.empty() || samples.baseline.empty()) return;
  const Scale scale(metric, samples.arm, samples.baseline);
  const Samples scaled{scale.in(samples.arm), scale.in(samples.baseline)};
  const double mean = average_of(scaled.arm) - average_of(scaled.baseline);
  difference.behind = scale.behind(mean);
  const std::optional<double> half_width = half_width_of(difference.pairing, scaled);
  if (!half_width) return;
  const auto [low, high] = std::minmax({scale.behind(mean - *half_width), scale.behind(mean + *half_width)});
  difference.low = low;
  difference.high = high;
}

}  // namespace

Difference difference_of(const ReportedMetric& metric, const ArmSummary& arm, const ArmSummary& baseline) {
  if (!arm.mixed.empty() || !baseline.mixed.empty()) return {};
  std::vector<Pair> pairs = pairs_by_seed(arm, baseline);
  Difference difference;
  if (pairs.size() < 2 && std::min(arm.values.size(), baseline.values.size()) >= 2) {
    difference.pairing = Pairing::independent;
    pairs = pairs_in_order(arm, baseline);
  }
  difference.seeds = std::ssize(pairs);
  for (const Pair& pair : pairs) {
    difference.arm_diverged_alone += !pair.arm && pair.baseline ? 1 : 0;
    difference.baseline_diverged_alone += pair.arm && !pair.baseline ? 1 : 0;
  }
  const bool by_seed = difference.pairing == Pairing::by_seed;
  add_interval(metric,
               by_seed ? finished_pairs(pairs) : Samples{finished(arm.values), finished(baseline.values)},
               difference);
  return difference;
}

}  // namespace halfscope
