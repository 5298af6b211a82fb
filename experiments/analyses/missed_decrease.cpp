// The share of FP32's decrease of the loss that an arm misses, seed by seed, from where its training starts:
// the arm that is called "start".
#include <fmt/format.h>

#include <algorithm>

#include "experiments/analyses/analyses.hpp"

namespace halfscope {
namespace missed_decrease {
namespace {

/// In percent.
std::vector<double> missed(const ArmSummary& start, const ArmSummary& reached, const ArmSummary& found) {
  std::vector<double> missed;
  const std::size_t seeds = std::min({start.values.size(), reached.values.size(), found.values.size()});
  for (std::size_t i = 0; i < seeds; ++i) {
    if (!start.values[i] || !reached.values[i] || !found.values[i]) continue;
    const double decrease = *start.values[i] - *reached.values[i];
    if (decrease > 0) missed.push_back(100 * (*found.values[i] - *reached.values[i]) / decrease);
  }
  return missed;
}

std::string words(const std::vector<double>& missed) {
  const auto [least, most] = std::ranges::minmax(missed);
  return missed.size() == 1 ? fmt::format("it misses {:.1f} % of FP32's decrease", least)
                            : fmt::format("it misses {:.1f} to {:.1f} % of FP32's decrease", least, most);
}

}  // namespace
}  // namespace missed_decrease

AnalysisResult find_missed_decrease(const AnalysisInput& input) {
  using namespace missed_decrease;
  AnalysisResult finding;
  const ArmSummary* const start = input.judged.find("start");
  if (start == nullptr) return finding;
  for (const ArmSummary& arm : input.judged.arms) {
    const ArmSummary* const reached = input.judged.find(arm.baseline);
    if (reached == nullptr) continue;
    const std::vector<double> shares = missed(*start, *reached, arm);
    if (!shares.empty()) finding.on_arms[arm.arm] = words(shares);
  }
  return finding;
}

}  // namespace halfscope
