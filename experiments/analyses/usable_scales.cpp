// Constant loss scales at which every seed trains: the longest run of neighbours among those that were run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "experiments/analyses/analyses.hpp"
#include "experiments/analyses/constant_scale.hpp"

namespace halfscope {
namespace usable_scales {
namespace {

struct ScaleResult {
  int scale_log2 = 0;
  bool trains = false;
};

/// Arms at a constant scale that is a power of two, ascending.
std::vector<ScaleResult> results_of(const ExperimentSummary& summary) {
  std::vector<ScaleResult> results;
  for (const ArmSummary& arm : summary.arms) {
    if (arm.in_fp32) continue;
    if (const auto scale_log2 = constant_scale_log2(arm.loss_scale))
      results.push_back({*scale_log2, arm.diverged == 0});
  }
  std::ranges::sort(results, {}, &ScaleResult::scale_log2);
  return results;
}

std::span<const ScaleResult> longest_run(const std::vector<ScaleResult>& results) {
  std::span<const ScaleResult> longest, usable;
  for (std::size_t i = 0; i < results.size(); ++i) {
    usable = results[i].trains ? std::span(results).subspan(i - usable.size(), usable.size() + 1)
                               : std::span<const ScaleResult>();
    if (usable.size() > longest.size()) longest = usable;
  }
  return longest;
}

}  // namespace
}  // namespace usable_scales

AnalysisResult find_usable_scales(const AnalysisInput& input) {
  using namespace usable_scales;
  const std::vector<ScaleResult> results = results_of(input.judged);
  const std::span<const ScaleResult> longest = longest_run(results);
  if (results.empty()) return {};
  if (longest.empty()) return {.sentence = "No constant scale that was run trains in every seed"};
  const int low = longest.front().scale_log2, high = longest.back().scale_log2;
  const bool has_gaps = high - low >= static_cast<int>(longest.size());
  return {.sentence = fmt::format("Every constant scale {}from 2^{} to 2^{} trains in every seed",
                                  has_gaps ? "that was run " : "", low, high)};
}

}  // namespace halfscope
