// Sentences of a verdict, and whether there is one.
#pragma once

#include <string>

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// One of both is empty, or both where the experiment has no verdict.
struct Verdict {
  std::string text;
  std::string withheld;  ///< why there is none
};

/// The experiment's verdict on the arms that it is about. It is withheld where runs were trained with
/// settings that are not the experiment's own, or at smoke size.
[[nodiscard]] Verdict verdict_on(const Experiment& experiment, const ExperimentSummary& summary);

/// "63.31 %", "0.525".
[[nodiscard]] std::string with_unit(const ReportedMetric& metric, double value);

/// "ARM diverged in 2 of 3 seeds (first at step 17)".
[[nodiscard]] std::string diverged_words(const ArmSummary& arm);

/// "ARM ends 21.40 points below BASELINE (44.40 against 65.80 %)", in the words of the metric's comparison,
/// or that it diverged, or that it was not run.
[[nodiscard]] std::string against_baseline(const ExperimentSummary& summary, const std::string& arm,
                                           const std::string& baseline);

/// True where both arms have a mean, no seed of `arm` diverged and the means differ by at most `difference`.
[[nodiscard]] bool within(const ExperimentSummary& summary, const std::string& arm,
                          const std::string& baseline, double difference);

}  // namespace halfscope
