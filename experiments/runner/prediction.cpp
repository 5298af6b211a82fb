// Reads the first step's records of a baseline and of an arm, and lays them side by side.
#include "experiments/runner/prediction.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include <halfscope/io/json/histogram_json.hpp>
#include <halfscope/stats/what_if.hpp>

#include "experiments/runner/records_file.hpp"
#include "experiments/runner/run_records.hpp"

namespace halfscope {
namespace {

namespace fs = std::filesystem;

/// Tensor and role.
using TensorKey = std::pair<std::string, std::string>;

TensorKey key_of(const Json& record) {
  return {record.at("tensor").get<std::string>(), record.at("role").get<std::string>()};
}

/// Hands over the records of `path` that belong to its first step.
void read_first_step(const fs::path& path, const std::function<void(const Json&)>& take) {
  std::optional<std::int64_t> first;
  read_records(path, [&](const Json& record) {
    const auto step = record.at("step").get<std::int64_t>();
    if (first && step != *first) return Reading::ends;
    first = step;
    take(record);
    return Reading::continues;
  });
}

/// The first step's histograms. A tensor that feeds several layers is cast after each contribution to its
/// gradient, so it may have several, in the order of the casts.
using Histograms = std::map<TensorKey, std::vector<ExponentHistogram>>;

Histograms first_histograms(const fs::path& run) {
  Histograms histograms;
  read_first_step(run / "histograms.jsonl",
                  [&](const Json& record) { histograms[key_of(record)].push_back(histogram_of(record)); });
  return histograms;
}

/// The exponent of a power of two; nothing for any other number.
std::optional<int> power_of_two(double scale) {
  int exponent = 0;
  if (!(scale > 0) || std::frexp(scale, &exponent) != 0.5) return std::nullopt;
  return exponent - 1;
}

/// One arm's tensors: flushed elements, summed over casts and seeds until `finish` divides them.
class ArmPredictions {
 public:
  ArmPredictions(std::string arm, std::vector<UnderflowPrediction>& all)
      : arm_(std::move(arm)), all_(all), first_(all.size()) {}

  void add_seed(const fs::path& baseline, const fs::path& run) {
    const Histograms histograms = first_histograms(baseline);
    if (histograms.empty()) return;
    std::map<TensorKey, std::size_t> casts;
    read_first_step(run / "metrics.jsonl", [&](const Json& record) {
      if (!record.contains("tensors")) return;
      for (const Json& counters : record["tensors"]) {
        const TensorKey key = key_of(counters);
        const auto found = histograms.find(key);
        const std::size_t cast = casts[key]++;
        if (found != histograms.end() && cast < found->second.size()) add(key, counters, found->second[cast]);
      }
    });
  }

  void finish() {
    for (std::size_t i = first_; i < all_.size(); ++i) {
      const auto elements = static_cast<double>(std::max<std::int64_t>(all_[i].elements, 1));
      all_[i].predicted /= elements;
      all_[i].counted /= elements;
    }
  }

 private:
  void add(const TensorKey& key, const Json& counters, const ExponentHistogram& histogram) {
    const auto scale = counters.at("scale").get<double>();
    const auto exponent = power_of_two(scale);
    if (!exponent) return;
    UnderflowPrediction& entry = entry_of(key);
    entry.scale = scale;
    entry.elements += counters.at("elements").get<std::int64_t>();
    entry.predicted += static_cast<double>(what_if(histogram, *exponent).flushed);
    entry.counted += counters.at("flushed").get<double>();
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
};

}  // namespace

std::vector<UnderflowPrediction> predict_underflow(const Experiment& experiment, const fs::path& folder) {
  std::vector<UnderflowPrediction> predictions;
  for (const Arm& arm : experiment.arms) {
    if (arm.name == experiment.predicts_from || !fs::is_directory(folder / arm.name)) continue;
    ArmPredictions of_arm(arm.name, predictions);
    for (const auto& [seed, run] : run_folders(folder / arm.name))
      of_arm.add_seed(folder / experiment.predicts_from / run.filename(), run);
    of_arm.finish();
  }
  return predictions;
}

}  // namespace halfscope
