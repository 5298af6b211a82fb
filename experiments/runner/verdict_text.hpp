// Sentences of a verdict, and whether there is one.
#pragma once

#include <optional>
#include <string>
#include <vector>

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

/// Whether each expectation of the experiment's claim holds, in their order; empty where an arm of it has no
/// result, and for all where the verdict is withheld.
[[nodiscard]] std::vector<std::optional<bool>> judge_claim(const Experiment& experiment,
                                                           const ExperimentSummary& summary);
/// Whether all do: false where one does not, empty where one is open and where there are none.
[[nodiscard]] std::optional<bool> all_hold(const std::vector<std::optional<bool>>& expectations);

/// The distance between the best and the worst seed of an arm; empty below two that did not diverge.
[[nodiscard]] std::optional<double> seed_spread(const ArmSummary& arm);

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
