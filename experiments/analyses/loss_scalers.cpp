// Loss scalers side by side: ours against FP32 and GradScaler's rule, those that never moved, and those that
// skip steps late.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "experiments/analyses/analyses.hpp"
#include "experiments/results/difference.hpp"

namespace halfscope {
namespace loss_scalers {
namespace {

constexpr std::string_view ours = "headroom", usual = "dynamic";
/// Steps in which a scaler may look for its scale.
constexpr double first_steps = 10;

/// The arm of `baseline`'s task under a scaler; null where it was not run.
const ArmSummary* arm_under(const ExperimentSummary& summary, const std::string& baseline,
                            std::string_view scaler) {
  const auto found = std::ranges::find_if(summary.arms, [&](const ArmSummary& arm) {
    return arm.baseline == baseline && arm.loss_scale == scaler;
  });
  return found == summary.arms.end() ? nullptr : &*found;
}

std::string seeds_range(const ArmSummary& arm) {
  double low = *arm.mean, high = *arm.mean;
  for (const auto& value : arm.values) {
    if (!value) continue;
    low = std::min(low, *value);
    high = std::max(high, *value);
  }
  return fmt::format("{:.3f} to {:.3f}", low, high);
}

std::string size_words(const ReportedMetric& metric, double difference) {
  return metric.comparison == Comparison::ratio ? fmt::format("{:.2g} %", 100 * difference)
                                                : fmt::format("{:.2g}", difference);
}

/// ", FP32 at 0.649 (0.641 to 0.655): not told apart by 5 seeds (detectable: 0.4 %)".
std::string beside_fp32(const ReportedMetric& metric, const ArmSummary& mine, const ArmSummary* fp32) {
  if (fp32 == nullptr || !fp32->mean) return "";
  const Difference difference = difference_of(metric, mine, *fp32);
  const std::optional<double> least = detectable(difference);
  if (!least) return fmt::format(", FP32 at {:.3f} (one seed: not judged)", *fp32->mean);
  const double behind = *difference.behind;
  const std::string judged =
      std::fabs(behind) <= *least
          ? fmt::format("not told apart by {} seeds", difference.seeds)
          : fmt::format("{} by {}", behind > 0 ? "worse" : "better", size_words(metric, std::fabs(behind)));
  return fmt::format(", FP32 at {:.3f} ({}): {} (detectable: {})", *fp32->mean, seeds_range(*fp32), judged,
                     size_words(metric, *least));
}

bool skips_late(const ArmSummary& arm) {
  return arm.column("last_skipped_step").value_or(0) > first_steps;
}

/// Metric, skipped steps and flushed gradients of ours, against FP32 and the usual scaler.
std::string sentence_on_ours(const ExperimentSummary& summary, const std::string& baseline) {
  const ArmSummary *mine = arm_under(summary, baseline, ours), *other = arm_under(summary, baseline, usual);
  if (mine == nullptr) return "";
  if (!mine->mean) return fmt::format("{} diverged in every seed.", mine->arm);
  std::string text =
      fmt::format("{} ends at {:.3f}{}; it skips {:.0f} steps, {} after the first ten", mine->arm,
                  *mine->mean, beside_fp32(summary.metric, *mine, summary.find(baseline)),
                  mine->column("skipped").value_or(0), skips_late(*mine) ? "some of them" : "none");
  const std::optional<double> flushed = mine->column("flushed");
  if (other != nullptr && flushed && other->column("flushed")) {
    text += fmt::format("; {:.2f} % of the gradients are flushed, {:.2f} % under GradScaler", 100 * *flushed,
                        100 * *other->column("flushed"));
  }
  return text + ".";
}

struct Lists {
  std::vector<std::string> baselines, still, late;
};

Lists lists_of(const ExperimentSummary& summary) {
  Lists lists;
  for (const ArmSummary& arm : summary.arms) {
    if (arm.baseline.empty()) continue;
    if (std::ranges::find(lists.baselines, arm.baseline) == lists.baselines.end())
      lists.baselines.push_back(arm.baseline);
    if (arm.column("first_at_final_scale") == 1.0 && arm.column("skipped") == 0.0)
      lists.still.push_back(arm.arm);
    if (skips_late(arm)) {
      lists.late.push_back(fmt::format("{} ({:.0f} steps, the last at {:.0f})", arm.arm,
                                       arm.column("skipped").value_or(0), *arm.column("last_skipped_step")));
    }
  }
  return lists;
}

}  // namespace
}  // namespace loss_scalers

AnalysisResult find_loss_scalers(const AnalysisInput& input) {
  using namespace loss_scalers;
  const Lists lists = lists_of(input.judged);
  std::vector<std::string> sentences;
  for (const std::string& baseline : lists.baselines) {
    std::string sentence = sentence_on_ours(input.judged, baseline);
    if (!sentence.empty()) sentences.push_back(std::move(sentence));
  }
  if (!lists.still.empty()) {
    sentences.push_back(
        fmt::format("Never moved, since nothing overflowed and their windows are longer than the run: {}.",
                    fmt::join(lists.still, ", ")));
  }
  if (!lists.late.empty())
    sentences.push_back(fmt::format("Skipped steps after the first ten: {}.", fmt::join(lists.late, ", ")));
  return {.sentence = fmt::format("{}", fmt::join(sentences, " "))};
}

}  // namespace halfscope
