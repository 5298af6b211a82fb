// A line per arm with a step that overflowed: what did first, in its first such step.
#include <fmt/format.h>

#include "experiments/analyses/analyses.hpp"

namespace halfscope {

AnalysisResult find_overflows(const AnalysisInput& input) {
  Section section{.heading = "overflows"};
  for (const ArmSummary& arm : input.summary.arms) {
    if (arm.overflows.empty()) continue;
    const std::size_t more = arm.overflows.size() - 1;
    section.lines.push_back(fmt::format("{}: {}{}", arm.arm, arm.overflows.front(),
                                        more == 0 ? "" : fmt::format("; {} more steps overflowed", more)));
  }
  AnalysisResult finding;
  if (!section.lines.empty()) finding.sections.push_back(std::move(section));
  return finding;
}

}  // namespace halfscope
