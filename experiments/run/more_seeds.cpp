// Looks for undecided expectations, and asks for further seeds of their arms.
#include "experiments/run/more_seeds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <halfscope/core/stderr_text.hpp>

#include "experiments/results/claim_table.hpp"
#include "experiments/results/summarise.hpp"
#include "experiments/results/verdict.hpp"

namespace halfscope {
namespace {

/// Each once, behind its baseline.
std::vector<std::string> undecided_arms(const Experiment& experiment, const std::vector<Judgement>& judged) {
  std::vector<std::string> arms;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    if (judged[i] != Judgement::undecided) continue;
    const Expectation& expectation = experiment.claim.expectations[i];
    for (const std::string& arm : {expectation.baseline, expectation.arm})
      if (std::ranges::find(arms, arm) == arms.end()) arms.push_back(arm);
  }
  return arms;
}

/// Arms that need further seeds; a claim that is not judged has none, and a note says why.
std::vector<std::string> open_arms(const Experiment& experiment, const std::filesystem::path& folder) {
  const ExperimentSummary summary = summarise(experiment, folder);
  const std::vector<Judgement> judged = judge_claim(experiment, summary);
  if (together(judged) == Judgement::not_judged)
    print_stderr(fmt::format("note: {}: --until-decided adds no seeds. {}\n", experiment.name,
                             claim_outcome(experiment, summary)));
  return undecided_arms(experiment, judged);
}

}  // namespace

std::vector<RequestedExperiment> with_more_seeds(const std::vector<RequestedExperiment>& requested) {
  std::vector<RequestedExperiment> further;
  for (const RequestedExperiment& one : requested) {
    const std::int64_t seeds = std::ssize(requested_seeds(one.request)), most = one.request.most_seeds;
    if (seeds >= most) continue;
    RequestedExperiment more = one;
    more.request.arms = open_arms(one.shown(), one.folder());
    if (more.request.arms.empty()) continue;
    more.request.seeds = std::min(2 * seeds, most);
    print_stderr(fmt::format("note: {}: undecided by {} seeds, so {} of them for {}\n", one.experiment.name,
                             seeds, more.request.seeds, fmt::join(more.request.arms, ", ")));
    further.push_back(std::move(more));
  }
  return further;
}

}  // namespace halfscope
