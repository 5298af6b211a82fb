// The verdict of an experiment: its sentences filled in, or why there is none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/results/summary.hpp"

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

/// `summary` with the arms alone that claim and verdict are about.
[[nodiscard]] ExperimentSummary judged_part(const Experiment& experiment, const ExperimentSummary& summary);

}  // namespace halfscope
