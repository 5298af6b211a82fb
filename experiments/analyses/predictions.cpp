// The tracker's prediction beside what happened: flushed shares from the FP32 arm's histograms, and as
// counted.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <optional>

#include <halfscope/core/escape.hpp>
#include <halfscope/io/json/histogram_json.hpp>
#include <halfscope/policy/policy.hpp>
#include <halfscope/stats/what_if.hpp>

#include "experiments/analyses/analyses.hpp"
#include "experiments/analyses/constant_scale.hpp"
#include "experiments/results/run_records.hpp"

namespace halfscope {
namespace predictions {
namespace {

/// Shares that loss scaling at an arm's scale should flush to zero, and did: of one tensor's elements at the
/// first step, over all seeds together. The prediction comes from the FP32 run's histogram alone.
struct Prediction {
  std::string arm;
  std::string tensor;
  std::string role;
  double scale = 1;
  std::int64_t elements = 0;  ///< elements of all casts and seeds
  double predicted = 0;
  double counted = 0;
};

/// Tensor and role.
using TensorKey = std::pair<std::string, std::string>;

TensorKey key_of(const Json& record) {
  return {record.at("tensor").get<std::string>(), record.at("role").get<std::string>()};
}

/// The first step's histograms. A tensor that feeds several layers is cast after each contribution to its
/// gradient, so it may have several, in the order of the casts.
using Histograms = std::map<TensorKey, std::vector<ExponentHistogram>>;

Histograms first_histograms(const RunRecords& records, const std::string& arm, std::int64_t seed) {
  Histograms histograms;
  records.each_first_histogram(
      arm, seed, [&](const Json& record) { histograms[key_of(record)].push_back(histogram_of(record)); });
  return histograms;
}

/// One arm's tensors: flushed elements, summed over casts and seeds until `finish` divides them.
class ArmPredictions {
 public:
  explicit ArmPredictions(std::string arm) : arm_(std::move(arm)) {}

  void add_seed(const Histograms& histograms, const Json& first_step) {
    if (histograms.empty() || first_step.is_null()) return;
    std::map<TensorKey, std::size_t> casts;
    for (const Json& counters : first_step.at("tensors")) {
      const TensorKey key = key_of(counters);
      const auto found = histograms.find(key);
      const std::size_t cast = casts[key]++;
      if (found != histograms.end() && cast < found->second.size()) add(key, counters, found->second[cast]);
    }
  }

  [[nodiscard]] std::vector<Prediction> finish() && {
    for (Prediction& entry : entries_) {
      const auto elements = static_cast<double>(std::max<std::int64_t>(entry.elements, 1));
      entry.predicted /= elements;
      entry.counted /= elements;
    }
    return std::move(entries_);
  }

 private:
  void add(const TensorKey& key, const Json& counters, const ExponentHistogram& histogram) {
    const auto scale = counters.at("scale").get<double>();
    const auto exponent = exact_log2(scale);
    if (!exponent) return;
    Prediction& entry = entry_of(key);
    entry.scale = scale;
    entry.elements += counters.at("elements").get<std::int64_t>();
    entry.predicted += static_cast<double>(what_if(histogram, *exponent).flushed);
    entry.counted += counters.at("flushed").get<double>();
  }

  Prediction& entry_of(const TensorKey& key) {
    const auto found = std::ranges::find_if(entries_, [&](const Prediction& entry) {
      return entry.tensor == key.first && entry.role == key.second;
    });
    if (found != entries_.end()) return *found;
    return entries_.emplace_back(Prediction{.arm = arm_, .tensor = key.first, .role = key.second});
  }

  std::string arm_;
  std::vector<Prediction> entries_;
};

/// Predictions for every arm but the one that predicts, tensors nearest the loss first.
/// Arms whose scale is no power of two, and runs without records, are left out.
std::vector<Prediction> predict(const Experiment& experiment, const std::filesystem::path& folder) {
  const RunRecords records(folder);
  std::vector<Prediction> all;
  for (const Arm& arm : experiment.arms) {
    if (arm.name == experiment.predicts_from) continue;
    ArmPredictions of_arm(arm.name);
    for (const std::int64_t seed : records.seeds(arm.name))
      of_arm.add_seed(first_histograms(records, experiment.predicts_from, seed),
                      records.first_counters(arm.name, seed));
    for (Prediction& entry : std::move(of_arm).finish()) all.push_back(std::move(entry));
  }
  return all;
}

/// Predicted and counted flushed shares of several tensors together.
struct Flushed {
  double predicted = 0, counted = 0, elements = 0;

  void add(const Prediction& entry) {
    const auto count = static_cast<double>(entry.elements);
    predicted += entry.predicted * count;
    counted += entry.counted * count;
    elements += count;
  }
  [[nodiscard]] std::string text() const {
    return elements == 0
               ? "-"
               : fmt::format("{:.1f} / {:.1f} %", 100 * predicted / elements, 100 * counted / elements);
  }
};

std::vector<Cell> row_of(const std::vector<Prediction>& all, const std::string& arm) {
  Flushed nearest, activations, weights;
  for (const Prediction& entry : all) {
    if (entry.arm != arm) continue;
    if (nearest.elements == 0) nearest.add(entry);
    (entry.role == name_of(Role::weight_gradient) ? weights : activations).add(entry);
  }
  return {arm, nearest.text(), activations.text(), weights.text()};
}

Section section_of(const Experiment& experiment, const std::vector<Prediction>& all) {
  Table table{{{"arm", "arm"},
               {"nearest", "nearest the loss: " + escaped(all.front().tensor), 2},
               {"activation_gradients", "activation gradients", 3},
               {"weight_gradients", "weight gradients", 1}},
              {}};
  for (const Arm& arm : experiment.arms) {
    if (std::ranges::find(all, arm.name, &Prediction::arm) != all.end())
      table.rows.push_back(row_of(all, arm.name));
  }
  return {.heading = fmt::format("flushed to zero at the first step, of all elements: predicted from the "
                                 "histograms of {} / counted",
                                 escaped(experiment.predicts_from)),
          .table = std::move(table),
          .note =
              "Further from the loss the counts leave the prediction, most of them downwards: what was "
              "flushed above arrives as an exact zero."};
}

Json json_of(const Prediction& entry) {
  return {{"arm", entry.arm},        {"scale", entry.scale},       {"tensor", entry.tensor},
          {"role", entry.role},      {"elements", entry.elements}, {"predicted", entry.predicted},
          {"counted", entry.counted}};
}

}  // namespace
}  // namespace predictions

AnalysisResult find_predictions(const AnalysisInput& input) {
  using namespace predictions;
  const std::vector<Prediction> all = predict(input.experiment, input.folder);
  AnalysisResult finding{.key = "predictions", .values = Json::array()};
  for (const Prediction& entry : all) finding.values.push_back(json_of(entry));
  if (!all.empty()) finding.sections.push_back(section_of(input.experiment, all));
  return finding;
}

}  // namespace halfscope
