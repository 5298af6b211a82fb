// Verdicts in words: an arm against its baseline in every comparison, diverged, missing, within a difference.
#include "experiments/results/verdict.hpp"

#include "experiments/cli/experiment_table.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::verdict_text_test {
namespace {

ArmSummary arm(std::string name, std::optional<double> mean) {
  return {.arm = std::move(name), .values = {mean}, .mean = mean};
}

ArmSummary diverged(std::string name, std::int64_t seeds, std::int64_t all, std::optional<double> mean = {}) {
  ArmSummary summary = arm(std::move(name), mean);
  summary.values.resize(static_cast<std::size_t>(all));
  summary.diverged = seeds;
  summary.diverged_step = 17;
  return summary;
}

const ReportedMetric accuracy{};
const ReportedMetric ap50{.name = "AP50", .unit = "", .comparison = Comparison::difference, .digits = 3};
const ReportedMetric perplexity{
    .name = "perplexity", .unit = "", .comparison = Comparison::ratio, .lower_is_better = true, .digits = 1};

/// "ours" against "theirs".
std::string compared(const ReportedMetric& metric, std::vector<ArmSummary> arms) {
  return against_baseline({.metric = metric, .arms = std::move(arms)}, "ours", "theirs");
}

TEST_CASE("a value has its metric's digits and unit", "[verdict]") {
  CHECK(with_unit(accuracy, 63.3149) == "63.31 %");
  CHECK(with_unit(ap50, 0.5251) == "0.525");
  CHECK(with_unit(perplexity, 120.26) == "120.3");
}

TEST_CASE("an arm ends above, below or at a multiple of its baseline", "[verdict]") {
  CHECK(compared(accuracy, {arm("ours", 44.4), arm("theirs", 65.8)}) ==
        "ours ends 21.40 points below theirs (44.40 against 65.80 %)");
  CHECK(compared(accuracy, {arm("ours", 66.0), arm("theirs", 65.75)}) ==
        "ours ends 0.25 points above theirs (66.00 against 65.75 %)");
  CHECK(compared(accuracy, {arm("ours", 66.0), arm("theirs", 66.0)}) ==
        "ours ends 0.00 points above theirs (66.00 against 66.00 %)");
  CHECK(compared(ap50, {arm("ours", 0.25), arm("theirs", 0.631)}) ==
        "ours ends 0.381 below theirs (0.250 against 0.631)");
  CHECK(compared(perplexity, {arm("ours", 229.0), arm("theirs", 100.0)}) ==
        "ours ends at 2.290 times theirs (229.0 against 100.0)");
}

TEST_CASE("an arm without a baseline says its own value", "[verdict]") {
  const std::string alone = "ours ends at 44.40 % (no theirs to compare with)";
  CHECK(compared(accuracy, {arm("ours", 44.4)}) == alone);
  CHECK(compared(accuracy, {arm("ours", 44.4), diverged("theirs", 1, 1)}) == alone);
}

TEST_CASE("an arm that diverged or was not run says so", "[verdict]") {
  CHECK(compared(accuracy, {arm("theirs", 1)}) == "ours was not run");
  CHECK(compared(accuracy, {diverged("ours", 1, 1), arm("theirs", 1)}) ==
        "ours diverged in 1 of 1 seed (first at step 17)");
  CHECK(compared(accuracy, {diverged("ours", 3, 3)}) == "ours diverged in 3 of 3 seeds (first at step 17)");
  CHECK(compared(accuracy, {diverged("ours", 1, 3, 60.0), arm("theirs", 61.0)}) ==
        "ours ends 1.00 points below theirs (60.00 against 61.00 %); ours diverged in 1 of 3 seeds (first at "
        "step 17)");
  CHECK(compared(accuracy, {diverged("ours", 2, 3, 60.0)}) ==
        "ours ends at 60.00 % (no theirs to compare with); ours diverged in 2 of 3 seeds (first at step 17)");
}

TEST_CASE("arms are within a difference, its end included, or they are not", "[verdict]") {
  const auto close = [](std::vector<ArmSummary> arms) {
    return within({.metric = accuracy, .arms = std::move(arms)}, "ours", "theirs", 0.5);
  };
  CHECK(close({arm("ours", 60.5), arm("theirs", 60.0)}));
  CHECK(close({arm("ours", 59.5), arm("theirs", 60.0)}));
  CHECK_FALSE(close({arm("ours", 60.75), arm("theirs", 60.0)}));
  CHECK_FALSE(close({arm("ours", 59.25), arm("theirs", 60.0)}));
  CHECK_FALSE(close({diverged("ours", 1, 3, 60.0), arm("theirs", 60.0)}));
  CHECK_FALSE(close({arm("ours", std::nullopt), arm("theirs", 60.0)}));
  CHECK_FALSE(close({arm("ours", 60.0), arm("theirs", std::nullopt)}));
  CHECK_FALSE(close({arm("ours", 60.0)}));
  CHECK_FALSE(close({arm("theirs", 60.0)}));
}

TEST_CASE("every experiment has a verdict over any of its arms", "[verdict]") {
  for (const Experiment& experiment : experiment_table()) {
    INFO(experiment.name);
    ExperimentSummary summary{.metric = experiment.metric, .arms = {}};
    const std::string nothing = experiment.verdict(summary);
    for (const Arm& each : experiment.arms) summary.arms.push_back(arm(each.name, 1.0));
    const std::string all = experiment.verdict(summary);
    for (ArmSummary& each : summary.arms) each = diverged(each.arm, 1, 1);
    const std::string none = experiment.verdict(summary);
    for (const std::string& text : {nothing, all, none}) {
      CHECK(text.ends_with('.'));
      CHECK(text.find("nan") == std::string::npos);
    }
    // Predictors of harm are judged by trainings, not by arms.
    if (experiment.harm_tasks.empty()) CHECK(all != none);
  }
}

TEST_CASE("a relative loss is said only where accuracy is lost", "[verdict]") {
  const auto verdict = [](double no_master) {
    return make_master_copy().verdict(
        {.metric = {}, .arms = {arm("fp32", 80.0), arm("fp16_no_master", no_master)}});
  };
  check_says(verdict(60), {"20.00 points below", "a relative loss of 25 %"});
  CHECK(verdict(84).find("relative loss") == std::string::npos);
}

ExperimentSummary against(std::optional<double> ours, double theirs, const ReportedMetric& metric) {
  return {.metric = metric,
          .arms = {ours ? arm("ours", ours) : diverged("ours", 1, 1), arm("theirs", theirs)}};
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
  CHECK(holds(Expected::worse, 0.5, {.arms = {arm("theirs", 64)}}) == std::nullopt);
  CHECK(holds(Expected::worse, 0.5, {.arms = {arm("ours", 64), diverged("theirs", 1, 1)}}) == std::nullopt);
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

std::string words_of_sweep(std::vector<ArmSummary> arms) {
  const std::string text = make_scale_sweep().verdict({.metric = accuracy, .arms = std::move(arms)});
  return text.substr(0, text.find('.'));
}

TEST_CASE("a sweep names the longest run of usable scales, and whether scales between them were not run",
          "[verdict]") {
  const ArmSummary s1 = arm("fp16_s1", 80), s2 = arm("fp16_s2", 81), s4 = arm("fp16_s4", 80);
  const ArmSummary s16 = arm("fp16_s16", 79), broken = diverged("fp16_s4", 1, 1);
  CHECK(words_of_sweep({s1, s2, s4}) == "Every constant scale from 2^0 to 2^2 trains in every seed");
  CHECK(words_of_sweep({s1, s2, broken, s16}) == "Every constant scale from 2^0 to 2^1 trains in every seed");
  CHECK(words_of_sweep({broken, s16}) == "Every constant scale from 2^4 to 2^4 trains in every seed");
  CHECK(words_of_sweep({s1, s4, s16}) ==
        "Every constant scale that was run from 2^0 to 2^4 trains in every seed");
  CHECK(words_of_sweep({broken}) == "No constant scale that was run trains in every seed");
  CHECK(words_of_sweep({}) == "No constant scale that was run trains in every seed");
}

}  // namespace
}  // namespace halfscope::verdict_text_test
