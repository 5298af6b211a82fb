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

const ReportedMetric accuracy{};
const ReportedMetric perplexity{
    .name = "perplexity", .unit = "", .comparison = Comparison::ratio, .lower_is_better = true, .digits = 1};

/// The arm with a mean and the settings that its runs would note.
ArmSummary noted(const Experiment& experiment, const Arm& from, std::optional<double> mean) {
  const TrainConfig config = arm_config(experiment, from, RunSize::small);
  ArmSummary arm = mean ? arm_with(from.name, mean) : diverged_arm(from.name, 1, 1);
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
  for (const char* name : {"accumulation", "all_reduces", "uses_of_weights", "ctc"})
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
                    .arms = {arm_with("fp32", 80.0), no_master ? arm_with("fp16_no_master", no_master)
                                                               : diverged_arm("fp16_no_master", 1, 1)}});
  };
  check_says(verdict(60), {"20.00 points below", "a relative loss of 25 %"});
  check_says(verdict(84), {"4.00 points above"});
  CHECK(verdict(84).find("relative loss") == std::string::npos);
  check_says(verdict({}), {"Without the master copy: fp16_no_master diverged in 1 of 1 seed"});
}

ExperimentSummary against(std::optional<double> ours, double theirs, const ReportedMetric& metric) {
  return {.metric = metric,
          .arms = {ours ? arm_with("ours", ours) : diverged_arm("ours", 1, 1), arm_with("theirs", theirs)}};
}

std::optional<bool> holds(Expected expected, double tolerance, const ExperimentSummary& summary) {
  Experiment experiment;
  experiment.claim = {"a claim", {{"ours", "theirs", expected, tolerance}}};
  return all_hold(judge_claim(experiment, summary));
}

TEST_CASE("an arm is as good up to the tolerance, and worse beyond", "[verdict]") {
  const auto [good, worse] = std::pair(Expected::as_good, Expected::worse);
  CHECK(holds(good, 0.5, against(63.5, 64, accuracy)) == true);
  CHECK(holds(good, 0.5, against(63.25, 64, accuracy)) == false);
  CHECK(holds(good, 0.5, against(70, 64, accuracy)) == true);
  CHECK(holds(worse, 0.5, against(63.25, 64, accuracy)) == true);
  CHECK(holds(worse, 0.5, against(63.5, 64, accuracy)) == false);
  CHECK(holds(good, 0.02, against(102, 100, perplexity)) == true);
  CHECK(holds(good, 0.02, against(103, 100, perplexity)) == false);
  CHECK(holds(good, 0.02, against(50, 100, perplexity)) == true);
  CHECK(holds(worse, 0.02, against(103, 100, perplexity)) == true);
}

TEST_CASE("an arm is within the seeds as far as the best of them is above the worst", "[verdict]") {
  const auto beside = [](double ours, std::vector<std::optional<double>> theirs,
                         const ReportedMetric& metric) {
    ExperimentSummary summary = against(ours, 64, metric);
    summary.arms[1].values = std::move(theirs);
    return holds(Expected::within_seeds, 0, summary);
  };
  CHECK(beside(62, {65, 64, 63}, accuracy) == true);
  CHECK(beside(61.75, {65, 64, 63}, accuracy) == false);
  CHECK(beside(70, {65, 64, 63}, accuracy) == true);
  CHECK(beside(65, {65, std::nullopt, 63}, perplexity) == true);
  CHECK(beside(66.5, {65, std::nullopt, 63}, perplexity) == false);
  CHECK(beside(64, {64}, accuracy) == std::nullopt);
  CHECK(beside(64, {64, std::nullopt}, accuracy) == std::nullopt);
  ExperimentSummary broken = against({}, 64, accuracy);
  broken.arms[1].values = {65.0, 63.0};
  CHECK(holds(Expected::within_seeds, 0, broken) == false);
}

TEST_CASE("an arm that diverged is worse", "[verdict]") {
  CHECK(holds(Expected::worse, 0.5, against({}, 64, accuracy)) == true);
  CHECK(holds(Expected::as_good, 0.5, against({}, 64, accuracy)) == false);
}

TEST_CASE("a claim is open where an arm or its baseline has no result", "[verdict]") {
  CHECK(holds(Expected::worse, 0.5, {.arms = {arm_with("theirs", 64)}}) == std::nullopt);
  CHECK(holds(Expected::worse, 0.5, {.arms = {arm_with("ours", 64), diverged_arm("theirs", 1, 1)}}) ==
        std::nullopt);
  CHECK(all_hold({true, std::nullopt}) == std::nullopt);
  CHECK(all_hold({std::nullopt, false}) == false);
  CHECK(all_hold({true, true}) == true);
  CHECK(all_hold({}) == std::nullopt);
}

TEST_CASE("a claim is open where there is no verdict", "[verdict]") {
  ExperimentSummary smoke = against(64, 64, accuracy);
  smoke.settings.size = RunSize::smoke;
  CHECK(holds(Expected::as_good, 0.5, smoke) == std::nullopt);
  ExperimentSummary changed = against(64, 64, accuracy);
  changed.settings.differences = {{.key = "steps", .own = "600", .found = "10", .arms = {}}};
  CHECK(holds(Expected::as_good, 0.5, changed) == std::nullopt);
}

TEST_CASE("claims are about arms that the experiments have", "[verdict]") {
  for (const Experiment& experiment : experiment_table()) {
    CAPTURE(experiment.name);
    CHECK(!experiment.claim.text.empty());
    CHECK(&experiment_table()[static_cast<std::size_t>(experiment.place - 1)] == &experiment);
    for (const Expectation& expectation : experiment.claim.expectations) {
      CHECK(experiment.arm(expectation.arm).name == expectation.arm);
      CHECK(experiment.arm(expectation.baseline).name == expectation.baseline);
      CHECK((expectation.tolerance > 0) == (expectation.expected != Expected::within_seeds));
    }
  }
}

}  // namespace
}  // namespace halfscope::verdict_test
