// Sentences of a verdict.
#pragma once

#include <string>

#include "experiments/experiment.hpp"

namespace halfscope {

/// "ARM diverged in 2 of 3 seeds (first at step 17)".
[[nodiscard]] std::string diverged_words(const ArmSummary& arm);

/// "ARM ends 21.4 points below BASELINE (44.4 against 65.8 %)", or that it diverged, or that it was not run.
[[nodiscard]] std::string against_baseline(const ExperimentSummary& summary, const std::string& arm,
                                           const std::string& baseline);

/// True where both arms have a mean and they differ by at most `points`.
[[nodiscard]] bool within(const ExperimentSummary& summary, const std::string& arm,
                          const std::string& baseline, double points);

}  // namespace halfscope
