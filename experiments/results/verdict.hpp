// The verdict of an experiment: its sentences filled in, or why there is none.
#pragma once

#include <string>
#include <vector>

#include "experiments/results/judgement.hpp"
#include "experiments/results/summary.hpp"

namespace halfscope {

/// One of both is empty, or both where the experiment has no verdict.
struct Verdict {
  std::string text;
  std::string withheld;  ///< why there is none
};

/// Why runs are not judged; empty where they are.
[[nodiscard]] std::string why_withheld(const ExperimentSummary& summary);

/// The experiment's verdict on the arms that it is about. It is withheld where runs were trained with
/// settings that are not the experiment's own, or at smoke size.
[[nodiscard]] Verdict verdict_on(const Experiment& experiment, const ExperimentSummary& summary);

/// The judgement of each expectation of the experiment's claim, in their order; not judged are all where the
/// verdict is withheld.
[[nodiscard]] std::vector<Judgement> judge_claim(const Experiment& experiment,
                                                 const ExperimentSummary& summary);

/// `summary` with the arms alone that claim and verdict are about.
[[nodiscard]] ExperimentSummary judged_part(const Experiment& experiment, const ExperimentSummary& summary);

}  // namespace halfscope
