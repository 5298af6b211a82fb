// Lays configurations side by side.
#include "experiments/results/setting_differences.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

#include "experiments/definition/arm_config.hpp"
#include "sim/train/recorded_keys.hpp"
#include "sim/train/run_settings.hpp"

namespace halfscope {
namespace {

/// Keys on which no number of a table depends.
constexpr std::array<std::string_view, 11> indifferent{"seed",
                                                       "data",
                                                       "device",
                                                       "checkpoint_every",
                                                       "evaluate_every",
                                                       "record_gradients",
                                                       "fp32_reference_every",
                                                       "probe_scales",
                                                       "probe_every",
                                                       "probe_policy",
                                                       "format_version"};
/// Keys that change what is counted, or where, and not what is trained.
constexpr std::array<std::string_view, 4> observing{"trackers", "observe_roles", "observe_every",
                                                    "execution"};

template <std::size_t size>
bool contains(const std::array<std::string_view, size>& keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// cuBLAS adds up in an order of its own; what is compared stays the same.
Effect effect_of(std::string_view key, const std::string& found) {
  if (contains(observing, key) || (key == "order" && found == "cublas")) return Effect::counts;
  return Effect::training;
}

void note(std::vector<SettingDifference>& all, SettingDifference difference) {
  const auto same = [&](const SettingDifference& other) {
    return std::tie(other.key, other.own, other.found) ==
           std::tie(difference.key, difference.own, difference.found);
  };
  const auto found = std::ranges::find_if(all, same);
  if (found == all.end()) {
    all.push_back(std::move(difference));
  } else if (found->arms.back() != difference.arms.front()) {
    found->arms.push_back(difference.arms.front());
  }
}

std::vector<SettingDifference> differences_at(const Experiment& experiment, std::span<const ArmRuns> runs,
                                              RunSize size) {
  std::vector<SettingDifference> all;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Arm& arm = experiment.arms[i];
    Json own;
    for (const FinishedRun& run : runs[i].finished) {
      if (run.config.is_null()) continue;
      if (own.is_null())
        own = settings_of(with_defaults(to_json(parsed(arm_config(experiment, arm, size)).config)));
      for (const auto& [key, value] : own.items()) {
        const auto found = run.config.find(key);
        if (contains(indifferent, key) || found == run.config.end() || *found == value) continue;
        const std::string text = text_of(*found);
        note(all, {key, text_of(value), text, {arm.name}, effect_of(key, text)});
      }
    }
  }
  return all;
}

std::int64_t finished_arms(std::span<const ArmRuns> runs) {
  return std::ranges::count_if(runs, [](const ArmRuns& arm) { return !arm.finished.empty(); });
}

}  // namespace

ComparedSettings compare_settings(const Experiment& experiment, std::span<const ArmRuns> runs) {
  std::optional<ComparedSettings> nearest;
  const auto weight = [](const ComparedSettings& compared) {
    std::size_t places = 0;
    for (const SettingDifference& difference : compared.differences) places += difference.arms.size();
    return places;
  };
  for (const RunSize size : {RunSize::small, RunSize::full, RunSize::smoke}) {
    ComparedSettings compared{size, differences_at(experiment, runs, size)};
    if (!nearest || weight(compared) < weight(*nearest)) nearest = std::move(compared);
    if (nearest->differences.empty()) break;
  }
  for (SettingDifference& difference : nearest->differences) {
    if (std::ssize(difference.arms) == finished_arms(runs)) difference.arms.clear();
  }
  return *nearest;
}

std::vector<std::string> keys_that_differ(const std::vector<FinishedRun>& runs) {
  std::vector<std::string> keys;
  for (const FinishedRun& run : runs) {
    const Json& first = runs.front().config;
    if (run.config.is_null() || first.is_null()) continue;
    for (const auto& [key, value] : run.config.items()) {
      const auto other = first.find(key);
      const bool is_same = other != first.end() && *other == value;
      if (is_same || contains(indifferent, key) || effect_of(key, text_of(value)) != Effect::training)
        continue;
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  return keys;
}

std::string to_string(const std::vector<SettingDifference>& differences) {
  std::string text;
  for (const SettingDifference& difference : differences) {
    text += fmt::format("{}{} = {} (own: {})", text.empty() ? "" : "; ", difference.key,
                        difference.found.empty() ? "''" : difference.found,
                        difference.own.empty() ? "''" : difference.own);
    if (!difference.arms.empty()) text += fmt::format(" in {}", fmt::join(difference.arms, ", "));
  }
  return text;
}

}  // namespace halfscope
