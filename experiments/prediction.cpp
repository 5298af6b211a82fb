// Reads the first step's records of a baseline and of an arm, and lays them side by side.
#include "experiments/prediction.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include <halfscope/io/json_lines.hpp>
#include <halfscope/stats/what_if.hpp>

#include "sim/train/records.hpp"

namespace halfscope {
namespace {

namespace fs = std::filesystem;

/// Tensor and role.
using TensorKey = std::pair<std::string, std::string>;

/// The records of `path` that belong to its first step; none where there is no such file.
std::vector<Json> first_step(const fs::path& path) {
  std::vector<Json> records;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    Json record = parse_json(line, path.string());
    if (!records.empty() && record.at("step") != records.front().at("step")) break;
    records.push_back(std::move(record));
  }
  return records;
}

std::map<TensorKey, ExponentHistogram> first_histograms(const fs::path& run) {
  std::map<TensorKey, ExponentHistogram> histograms;
  for (const Json& record : first_step(run / "histograms.jsonl")) {
    histograms.emplace(
        TensorKey{record.at("tensor").get<std::string>(), record.at("role").get<std::string>()},
        histogram_of(record));
  }
  return histograms;
}

/// The exponent of a power of two; nothing for any other number.
std::optional<int> power_of_two(double scale) {
  int exponent = 0;
  if (!(scale > 0) || std::frexp(scale, &exponent) != 0.5) return std::nullopt;
  return exponent - 1;
}

/// One arm's tensors, summed over seeds.
class ArmPredictions {
 public:
  ArmPredictions(std::string arm, std::vector<UnderflowPrediction>& all)
      : arm_(std::move(arm)), all_(all), first_(all.size()) {}

  void add_seed(const fs::path& baseline, const fs::path& run) {
    const auto histograms = first_histograms(baseline);
    const std::vector<Json> step = first_step(run / "metrics.jsonl");
    if (histograms.empty() || step.empty() || !step.front().contains("tensors")) return;
    ++seeds_;
    for (const Json& counters : step.front()["tensors"]) add(counters, histograms);
  }

  void finish() {
    for (std::size_t i = first_; i < all_.size(); ++i) {
      all_[i].predicted /= seeds_;
      all_[i].counted /= seeds_;
    }
  }

 private:
  void add(const Json& counters, const std::map<TensorKey, ExponentHistogram>& histograms) {
    const TensorKey key{counters.at("tensor").get<std::string>(), counters.at("role").get<std::string>()};
    const auto histogram = histograms.find(key);
    const auto scale = counters.at("scale").get<double>();
    const auto exponent = power_of_two(scale);
    if (histogram == histograms.end() || !exponent) return;
    const auto elements = counters.at("elements").get<std::int64_t>();
    UnderflowPrediction& entry = entry_of(key);
    entry.scale = scale;
    entry.elements = elements;
    const WhatIf at_scale = what_if(histogram->second, *exponent);
    entry.predicted += at_scale.of_all(at_scale.flushed);
    entry.counted +=
        counters.at("flushed").get<double>() / static_cast<double>(std::max<std::int64_t>(elements, 1));
  }

  UnderflowPrediction& entry_of(const TensorKey& key) {
    const auto begin = all_.begin() + static_cast<std::ptrdiff_t>(first_);
    const auto found = std::find_if(begin, all_.end(), [&](const UnderflowPrediction& entry) {
      return entry.tensor == key.first && entry.role == key.second;
    });
    if (found != all_.end()) return *found;
    return all_.emplace_back(UnderflowPrediction{.arm = arm_, .tensor = key.first, .role = key.second});
  }

  std::string arm_;
  std::vector<UnderflowPrediction>& all_;
  std::size_t first_;
  int seeds_ = 0;
};

}  // namespace

std::vector<UnderflowPrediction> predict_underflow(const Experiment& experiment, const fs::path& folder) {
  std::vector<UnderflowPrediction> predictions;
  for (const Arm& arm : experiment.arms) {
    if (arm.name == experiment.predicts_from || !fs::is_directory(folder / arm.name)) continue;
    ArmPredictions of_arm(arm.name, predictions);
    for (const auto& seed : fs::directory_iterator(folder / arm.name)) {
      of_arm.add_seed(folder / experiment.predicts_from / seed.path().filename(), seed.path());
    }
    of_arm.finish();
  }
  return predictions;
}

}  // namespace halfscope
