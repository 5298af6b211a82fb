// A line per arm with several ranks: gradients that its all-reduces lost.
#include <fmt/format.h>

#include "experiments/analyses/analyses.hpp"

namespace halfscope {
namespace all_reduce_losses {
namespace {

/// "0.3 %", a small share with as many digits as it needs.
std::string words(const ArmSummary& arm, std::string_view column) {
  const double share = arm.column(column).value_or(0);
  return share == 0 ? "0 %" : fmt::format("{:.2g} %", 100 * share);
}

}  // namespace
}  // namespace all_reduce_losses

AnalysisResult find_all_reduce_losses(const AnalysisInput& input) {
  using namespace all_reduce_losses;
  Section section{.heading = "all-reduces"};
  bool silent = false;
  for (const ArmSummary& arm : input.summary.arms) {
    const std::optional<double> ranks = arm.column("all_reduce.ranks");
    if (!ranks) continue;
    silent = silent || arm.column("all_reduce.stagnated_steps").value_or(0) > 0;
    section.lines.push_back(
        fmt::format("{}: {:.0f} ranks; adds that stagnated {}, addends flushed {}, means overflowed {}",
                    arm.arm, *ranks, words(arm, "all_reduce.stagnated"), words(arm, "all_reduce.flushed"),
                    words(arm, "all_reduce.overflowed")));
  }
  if (silent) {
    section.lines.emplace_back(
        "An add that stagnates loses a rank's gradient, or the sum so far, and leaves a finite number: no "
        "loss "
        "scaler sees it.");
  }
  AnalysisResult finding;
  if (!section.lines.empty()) finding.sections.push_back(std::move(section));
  return finding;
}

}  // namespace halfscope
