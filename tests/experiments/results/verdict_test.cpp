// Verdicts and claims: which expectations hold, and what every experiment says of its arms.
#include "experiments/results/verdict.hpp"

#include "experiments/analyses/analyses.hpp"
#include "experiments/cli/experiment_table.hpp"
#include "experiments/definition/arm_config.hpp"
#include "experiments/results/comparison.hpp"
#include "tests/experiments/summaries.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::verdict_test {
namespace {

/// The arm with a mean and the settings that its runs would note.
ArmSummary noted(const Experiment& experiment, const Arm& from, std::optional<double> mean) {
  const TrainConfig config = arm_config(experiment, from, RunSize::small);
  ArmSummary arm = mean ? steady_arm(from.name, *mean) : diverged_arm(from.name, 3, 3);
  arm.baseline = from.baseline;
  arm.loss_scale = config.loss_scale;
  arm.loss_weight = config.loss_weight;
  arm.in_fp32 = config.policy == "fp32";
  arm.columns = columns_with({{"flushed", 0.5}, {"lost_updates", 0.5}, {"skipped", 1}});
  return arm;
}

/// The verdict with the findings that the results give; tables that need no results take long, and say
/// nothing in a verdict.
std::string verdict_of(Experiment experiment, ExperimentSummary summary) {
  const TemporaryFolder nothing;
  for (const char* name :
       {"accumulation", "all_reduces", "uses_of_weights", "ctc", "mean_squares", "fp8_sums",
        "quantizer_errors", "attention_rounding", "one_sided_rounding", "where_fp32_sums"})
    std::erase(experiment.analyses, name);
  add_findings(experiment, nothing.path(), summary);
  return verdict_on(experiment, summary).text;
}

TEST_CASE("every experiment has a verdict over any of its arms", "[verdict]") {
  for (const Experiment& experiment : experiment_table()) {
    INFO(experiment.name);
    const ExperimentSummary empty{.metric = experiment.metric, .arms = {}};
    ExperimentSummary good = empty, broken = empty;
    for (const Arm& each : experiment.arms) {
      good.arms.push_back(noted(experiment, each, 1.0));
      broken.arms.push_back(
          noted(experiment, each, each.baseline.empty() ? std::optional(1.0) : std::nullopt));
    }
    const std::string nothing = verdict_of(experiment, empty), all = verdict_of(experiment, good),
                      none = verdict_of(experiment, broken);
    for (const std::string& text : {nothing, all, none}) {
      CHECK(text.ends_with('.'));
      CHECK(text.find("nan") == std::string::npos);
      CHECK(text.find('{') == std::string::npos);
    }
    // Predictors of harm are judged by trainings, not by arms.
    if (experiment.harm_tasks.empty()) CHECK(all != none);
  }
}

TEST_CASE("a relative loss is said only where accuracy is lost", "[verdict]") {
  const auto verdict = [](std::optional<double> no_master) {
    return fill_in(find_in_table("experiment", "master-copy", experiment_table()).verdict,
                   {.metric = {},
                    .arms = {steady_arm("fp32", 80.0), no_master ? steady_arm("fp16_no_master", *no_master)
                                                                 : diverged_arm("fp16_no_master", 3, 3)}});
  };
  check_says(verdict(60), {"20.00 points below", "a relative loss of 25 %"});
  check_says(verdict(84), {"4.00 points above"});
  CHECK(verdict(84).find("relative loss") == std::string::npos);
  check_says(verdict({}), {"Without the master copy: fp16_no_master diverged in 3 of 3 seeds"});
}

ExperimentSummary against(double ours, double theirs) {
  return {.metric = {}, .arms = {steady_arm("ours", ours), steady_arm("theirs", theirs)}};
}

Judgement judged(const ExperimentSummary& summary) {
  Experiment experiment;
  experiment.claim = {"a claim", {{"ours", "theirs", Expected::as_good, 0.5}}};
  return together(judge_claim(experiment, summary));
}

TEST_CASE("a claim is judged by the arms that it is about", "[verdict]") {
  CHECK(judged(against(63.5, 64)) == Judgement::holds);
  CHECK(judged(against(63.25, 64)) == Judgement::does_not_hold);
  CHECK(judged({.metric = {}, .arms = {steady_arm("theirs", 64)}}) == Judgement::not_judged);
}

TEST_CASE("a claim is not judged where there is no verdict", "[verdict]") {
  ExperimentSummary smoke = against(64, 64);
  smoke.settings.size = RunSize::smoke;
  CHECK(judged(smoke) == Judgement::not_judged);
  ExperimentSummary changed = against(64, 64);
  changed.settings.differences = {{.key = "steps", .own = "600", .found = "10", .arms = {}}};
  CHECK(judged(changed) == Judgement::not_judged);
}

TEST_CASE("claims are about arms that the experiments have", "[verdict]") {
  for (const Experiment& experiment : experiment_table()) {
    CAPTURE(experiment.name);
    CHECK(!experiment.claim.text.empty());
    CHECK(&experiment_table()[static_cast<std::size_t>(experiment.place - 1)] == &experiment);
    for (const Expectation& expectation : experiment.claim.expectations) {
      CHECK(experiment.arm(expectation.arm).name == expectation.arm);
      CHECK(experiment.arm(expectation.baseline).name == expectation.baseline);
      CHECK((expectation.margin > 0 || expectation.expected != Expected::as_good));
      CHECK(expectation.reason.ends_with('.'));
    }
  }
}

}  // namespace
}  // namespace halfscope::verdict_test
