// Judgements by intervals: as good, worse, better; decided, undecided, not judged.
#include "experiments/results/judgement.hpp"

#include <random>

#include "tests/experiments/summaries.hpp"
#include "tests/support/catch.hpp"

namespace halfscope::judgement_test {
namespace {

constexpr auto holds = Judgement::holds, does_not = Judgement::does_not_hold,
               undecided = Judgement::undecided;
constexpr auto as_good_one = Expected::as_good, worse = Expected::worse, better = Expected::better;

Difference between(double low, double high) {
  return {.seeds = 5, .behind = (low + high) / 2, .low = low, .high = high};
}

/// `alone` of `seeds` of the arm, or of its baseline, diverged, and the others' interval is `rest`.
Difference diverging(std::int64_t alone, std::int64_t seeds, std::optional<Difference> rest = {}) {
  Difference difference = rest.value_or(Difference{});
  difference.seeds = seeds;
  difference.arm_diverged_alone = alone;
  return difference;
}

Difference exchanged(Difference difference) {
  std::swap(difference.arm_diverged_alone, difference.baseline_diverged_alone);
  return difference;
}

TEST_CASE("as good is an interval within the margin on both sides", "[judgement]") {
  CHECK(judge(between(-0.5, 0.5), as_good_one, 0.5) == holds);
  CHECK(judge(between(0.1, 0.4), as_good_one, 0.5) == holds);
  CHECK(judge(between(-0.75, 0.25), as_good_one, 0.5) == undecided);
  CHECK(judge(between(-0.25, 0.75), as_good_one, 0.5) == undecided);
  CHECK(judge(between(-9, 9), as_good_one, 0.5) == undecided);
  CHECK(judge(between(0.75, 1), as_good_one, 0.5) == does_not);
  CHECK(judge(between(-1, -0.75), as_good_one, 0.5) == does_not);
}

TEST_CASE("worse and better are intervals beyond the margin", "[judgement]") {
  CHECK(judge(between(0.75, 2), worse, 0.5) == holds);
  CHECK(judge(between(0.5, 2), worse, 0.5) == undecided);
  CHECK(judge(between(0.25, 2), worse, 0.5) == undecided);
  CHECK(judge(between(0.25, 0.5), worse, 0.5) == does_not);
  CHECK(judge(between(-2, -1), worse, 0.5) == does_not);
  CHECK(judge(between(0.25, 2), worse, 0) == holds);
  CHECK(judge(between(-0.25, 2), worse, 0) == undecided);
  CHECK(judge(between(0, 0), worse, 0) == does_not);
  CHECK(judge(between(-2, -0.75), better, 0.5) == holds);
  CHECK(judge(between(-2, -0.25), better, 0.5) == undecided);
  CHECK(judge(between(-0.5, 0.25), better, 0.5) == does_not);
  CHECK(judge(between(0, 0), better, 0) == does_not);
}

TEST_CASE("runs that diverge alone count once they are too many for chance", "[judgement]") {
  // The chance of so many or more of a binomial with 1/4 is at most 2.5 %.
  const std::vector<std::pair<std::int64_t, std::int64_t>> enough{{3, 3}, {4, 4}, {4, 5}, {5, 6}, {6, 10}},
      too_few{{2, 2}, {2, 3}, {3, 4}, {3, 5}, {4, 6}, {5, 10}};
  for (const auto& [alone, seeds] : enough) {
    CAPTURE(alone, seeds);
    CHECK(judge(diverging(alone, seeds), worse, 9) == holds);
    CHECK(judge(diverging(alone, seeds), as_good_one, 9) == does_not);
    CHECK(judge(diverging(alone, seeds), better, 0) == does_not);
    CHECK(judge(exchanged(diverging(alone, seeds)), better, 9) == holds);
    CHECK(judge(exchanged(diverging(alone, seeds)), worse, 9) == does_not);
    CHECK(judge(exchanged(diverging(alone, seeds)), as_good_one, 9) == does_not);
  }
  for (const auto& [alone, seeds] : too_few) {
    CAPTURE(alone, seeds);
    for (const Expected expected : {worse, as_good_one, better})
      CHECK(judge(diverging(alone, seeds), expected, 9) == undecided);
  }
}

TEST_CASE("a few that diverge leave open what they speak against", "[judgement]") {
  const Difference equal = diverging(1, 5, between(-0.1, 0.1)), behind = diverging(1, 5, between(1, 2)),
                   ahead = diverging(1, 5, between(-2, -1));
  CHECK(judge(equal, as_good_one, 0.5) == undecided);
  CHECK(judge(behind, as_good_one, 0.5) == does_not);
  CHECK(judge(behind, worse, 0.5) == holds);
  CHECK(judge(equal, worse, 0.5) == undecided);
  CHECK(judge(ahead, worse, 0.5) == undecided);
  CHECK(judge(ahead, better, 0.5) == undecided);
  CHECK(judge(exchanged(behind), worse, 0.5) == undecided);
  CHECK(judge(exchanged(ahead), better, 0.5) == holds);
}

TEST_CASE("one seed is not judged, and neither is an arm without a result", "[judgement]") {
  const ExperimentSummary one{.metric = {}, .arms = {arm_with("ours", 64), arm_with("theirs", 64)}};
  const ExperimentSummary broken{.metric = {}, .arms = {diverged_arm("ours", 1, 1), arm_with("theirs", 64)}};
  const ExperimentSummary alone{.metric = {}, .arms = {steady_arm("theirs", 64)}};
  for (const Expected expected : {worse, as_good_one, better}) {
    const Expectation expectation{"ours", "theirs", expected, 0.5};
    for (const ExperimentSummary& summary : {one, broken, alone})
      CHECK(judge(summary, expectation) == Judgement::not_judged);
  }
}

TEST_CASE("of two equal arms one in twenty judgements by the interval is wrong", "[judgement]") {
  std::mt19937 random(7);
  std::normal_distribution<double> noise;
  const auto draw = [&] {
    std::vector<std::optional<double>> values;
    for (int i = 0; i < 4; ++i) values.emplace_back(70 + noise(random));
    return values;
  };
  int wrong = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const ExperimentSummary summary{.metric = {},
                                    .arms = {arm_of_seeds("a", draw()), arm_of_seeds("b", draw())}};
    for (const Expected expected : {worse, better})
      wrong += judge(summary, {"a", "b", expected, 0}) == holds ? 1 : 0;
  }
  CHECK(wrong > 140);
  CHECK(wrong < 260);
}

TEST_CASE("a claim is as its expectations together", "[judgement]") {
  CHECK(together({}) == Judgement::not_judged);
  CHECK(together({holds, holds}) == holds);
  CHECK(together({holds, undecided}) == undecided);
  CHECK(together({holds, undecided, Judgement::not_judged}) == Judgement::not_judged);
  CHECK(together({holds, undecided, Judgement::not_judged, does_not}) == does_not);
  CHECK(in_words(does_not) == "does not hold");
  CHECK(decided(does_not) == false);
  CHECK(decided(holds) == true);
  CHECK(decided(undecided) == std::nullopt);
}

std::optional<bool> is_as_good(double ours, std::vector<Expectation> expectations = {},
                               const ReportedMetric& metric = {}) {
  Experiment experiment;
  experiment.claim.expectations = std::move(expectations);
  ExperimentSummary summary{.metric = metric, .arms = {steady_arm("ours", ours), steady_arm("theirs", 100)}};
  summary.arms[0].baseline = "theirs";
  return as_good(experiment, summary, summary.arms[0]);
}

TEST_CASE("an arm is as good up to 5 % behind, or to the margin of a claim that it is", "[judgement]") {
  const ReportedMetric perplexity{.comparison = Comparison::ratio, .lower_is_better = true};
  CHECK(is_as_good(95) == true);
  CHECK(is_as_good(94.75) == false);
  CHECK(is_as_good(150) == true);
  CHECK(is_as_good(104.99, {}, perplexity) == true);
  CHECK(is_as_good(105.25, {}, perplexity) == false);
  CHECK(is_as_good(99.25, {{"ours", "theirs", as_good_one, 0.5}}) == false);
  CHECK(is_as_good(99.5, {{"ours", "theirs", as_good_one, 0.5}}) == true);
  CHECK(is_as_good(99.25, {{"other", "theirs", as_good_one, 0.5}}) == true);
  CHECK(is_as_good(99.25, {{"ours", "theirs", worse, 0.5}}) == true);
}

TEST_CASE("whether an arm is as good is open where seeds are few or wide apart", "[judgement]") {
  ExperimentSummary summary{.metric = {},
                            .arms = {arm_of_seeds("ours", {80.0, 120.0, 100.0}), steady_arm("theirs", 100)}};
  CHECK(as_good({}, summary, summary.arms[0]) == std::nullopt);
  summary.arms[0].baseline = "theirs";
  CHECK(as_good({}, summary, summary.arms[0]) == std::nullopt);
  summary.arms[0].values = {std::nullopt, std::nullopt, std::nullopt};
  CHECK(as_good({}, summary, summary.arms[0]) == false);
  summary.arms[0] = arm_with("ours", 100);
  summary.arms[0].baseline = "theirs";
  CHECK(as_good({}, summary, summary.arms[0]) == std::nullopt);
}

}  // namespace
}  // namespace halfscope::judgement_test
