// Loss scalers side by side: metric, skipped steps, flushed gradients, and when the scale got there.
#include "experiments/ablations/experiments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <halfscope/scaling/scalers.hpp>

#include "experiments/ablations/detection_loss_scale.hpp"
#include "experiments/ablations/language_model.hpp"

namespace halfscope {
namespace scaler_comparison {
namespace {

constexpr const char* paper_statement =
    "Section 3.2 chooses the factor by hand, or so that it times the largest gradient stays below 65,504; "
    "section 5 "
    "leaves raising and lowering it while training to future work. No scaler is given.";

constexpr std::string_view ours = "headroom", usual = "dynamic";
/// Steps in which a scaler may look for its scale.
constexpr double first_steps = 10;

struct Task {
  std::string_view name;
  std::string_view summary;
  Settings (*settings)();
  Settings (*full_settings)();
};
constexpr std::array tasks{
    Task{"detector", "single-shot detector (AP50)", detection_settings, detection_full_settings},
    Task{"language_model", "GRU language model (test perplexity)", large_batch_language_model_settings,
         [] { return language_model_full_settings(2048); }}};

std::string arm_name(const Task& task, std::string_view scaler) {
  return fmt::format("{}_{}", task.name, scaler);
}

/// A constant scale is no scaler to compare: the loss-scaling ablations have them.
bool is_constant(const ScalerEntry& scaler) {
  return scaler.name == "none" || scaler.name == "static";
}

std::string seeds_range(const ArmSummary& arm) {
  double low = *arm.mean, high = *arm.mean;
  for (const auto& value : arm.values) {
    if (value) std::tie(low, high) = std::pair(std::min(low, *value), std::max(high, *value));
  }
  return fmt::format("{:.3f} to {:.3f}", low, high);
}

/// The largest difference between two seeds.
double spread(const ArmSummary& arm) {
  double low = *arm.mean, high = *arm.mean;
  for (const auto& value : arm.values) {
    if (!value) continue;
    low = std::min(low, *value);
    high = std::max(high, *value);
  }
  return high - low;
}

/// Metric, skipped steps and flushed gradients of ours, against FP32 and the usual scaler.
std::string sentence_on_ours(const Task& task, const ExperimentSummary& summary) {
  const ArmSummary* fp32 = summary.find(arm_name(task, "fp32"));
  const ArmSummary* mine = summary.find(arm_name(task, ours));
  const ArmSummary* other = summary.find(arm_name(task, usual));
  if (mine == nullptr) return "";
  if (!mine->mean) return fmt::format("{} diverged in every seed. ", mine->arm);
  std::string text = fmt::format("{} ends at {:.3f}", mine->arm, *mine->mean);
  if (fp32 != nullptr && fp32->mean && fp32->values.size() > 1) {
    const bool close = mine->diverged == 0 && std::fabs(*mine->mean - *fp32->mean) <= spread(*fp32);
    text += fmt::format(", FP32 at {:.3f} ({}): {} the spread of seeds", *fp32->mean, seeds_range(*fp32),
                        close ? "within" : "outside");
  } else if (fp32 != nullptr && fp32->mean) {
    text += fmt::format(", FP32 at {:.3f} (one seed: no spread to compare with)", *fp32->mean);
  }
  const bool late = mine->last_skipped.value_or(0) > first_steps;
  text += fmt::format("; it skips {:.0f} steps, {} after the first ten", mine->skipped.value_or(0),
                      late ? "some of them" : "none");
  if (other != nullptr && mine->flushed && other->flushed) {
    text += fmt::format("; {:.2f} % of the gradients are flushed, {:.2f} % under GradScaler",
                        100 * *mine->flushed, 100 * *other->flushed);
  }
  return text + ". ";
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string verdict(const ExperimentSummary& summary) {
  std::string text;
  std::vector<std::string> still, late;
  for (const Task& task : tasks) {
    text += sentence_on_ours(task, summary);
    for (const ScalerEntry& scaler : scaler_table) {
      const ArmSummary* arm = summary.find(arm_name(task, scaler.name));
      if (arm == nullptr) continue;
      if (arm->first_at_final_scale == 1.0 && arm->skipped == 0.0) still.push_back(arm->arm);
      if (arm->last_skipped.value_or(0) > first_steps) {
        late.push_back(fmt::format("{} ({:.0f} steps, the last at {:.0f})", arm->arm,
                                   arm->skipped.value_or(0), *arm->last_skipped));
      }
    }
  }
  if (!still.empty()) {
    text +=
        fmt::format("Never moved, since nothing overflowed and their windows are longer than the run: {}. ",
                    joined(still));
  }
  if (!late.empty()) text += fmt::format("Skipped steps after the first ten: {}. ", joined(late));
  if (text.empty()) return "Nothing to compare was run.";
  text.pop_back();
  return text;
}

}  // namespace
}  // namespace scaler_comparison

Experiment make_scaler_comparison() {
  using namespace scaler_comparison;
  Experiment experiment{
      .name = "scaler-comparison",
      .summary = "every loss scaler with its published defaults, on a detector and a language model",
      .paper = paper_statement,
      .claim = {"A scaler that moves the factor during training spares the choice by hand."},
      .metric = {.name = "AP50 / perplexity", .unit = "", .comparison = Comparison::ratio, .digits = 3},
      .settings = {{"record_gradients", "histogram"}},
      .varied = {"loss_scale"},
      .arms = {},
      .quick_set = QuickSet::left_out,
      .scale_columns = ScaleColumns::shown,
      .verdict = verdict};
  for (const Task& task : tasks) {
    const auto add = [&](std::string_view name, std::string_view words, std::string_view policy,
                         std::string_view scaler) {
      const Settings own{
          {"policy", std::string(policy)}, {"loss_scale", std::string(scaler)}, {"evaluate_every", "0"}};
      experiment.arms.push_back({arm_name(task, name), fmt::format("{}; {}", task.summary, words),
                                 with(task.settings(), own), task.full_settings()});
    };
    add("fp32", "FP32", "fp32", "none");
    for (const ScalerEntry& scaler : scaler_table) {
      if (!is_constant(scaler)) add(scaler.name, scaler.summary, "fp16_mixed", scaler.name);
    }
    for (const std::string_view name : {std::string_view("fp32"), usual, ours})
      experiment.full_arms.push_back(arm_name(task, name));
  }
  for (const std::string& arm : experiment.full_arms)
    if (arm.starts_with(tasks.front().name)) experiment.quick_arms.push_back(arm);
  return experiment;
}

}  // namespace halfscope
