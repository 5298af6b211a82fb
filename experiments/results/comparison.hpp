// Arms compared in words.
#pragma once

#include <string>

#include "experiments/results/summary.hpp"

namespace halfscope {

/// "63.31 %", "0.525".
[[nodiscard]] std::string with_unit(const ReportedMetric& metric, double value);

/// "ARM diverged in 2 of 3 seeds (first at step 17)", or how many ended beyond the untrained model.
[[nodiscard]] std::string diverged_words(const ArmSummary& arm);

/// "ARM ends 21.40 points below BASELINE (44.40 against 65.80 %)", in the words of the metric's comparison,
/// or that it diverged, or that it was not run.
[[nodiscard]] std::string against_baseline(const ExperimentSummary& summary, const std::string& arm,
                                           const std::string& baseline);

/// `sentences` filled in and joined by blanks; "No arms to compare were run." where all are left out.
[[nodiscard]] std::string fill_in(const std::vector<Sentence>& sentences, const ExperimentSummary& summary);

}  // namespace halfscope
