// As good as the baseline: by the claim's tolerance, or by the usual one.
#include "experiments/results/as_good.hpp"

#include "tests/experiments/summaries.hpp"
#include "tests/support/catch.hpp"

namespace halfscope::as_good_test {
namespace {

std::optional<bool> judged(double ours, ArmSummary theirs, std::vector<Expectation> expectations = {},
                           const ReportedMetric& metric = {}) {
  Experiment experiment;
  experiment.claim.expectations = std::move(expectations);
  ExperimentSummary summary{.metric = metric, .arms = {arm_with("ours", ours), std::move(theirs)}};
  summary.arms[0].baseline = "theirs";
  return as_good(experiment, summary, summary.arms[0]);
}

/// A baseline at 100 whose interval reaches `reach` above it.
ArmSummary baseline(double reach = 0) {
  ArmSummary arm = arm_with("theirs", 100);
  if (reach > 0) {
    arm.low = 100 - reach;
    arm.high = 100 + reach;
  }
  return arm;
}

const ReportedMetric perplexity{
    .name = "perplexity", .unit = "", .comparison = Comparison::ratio, .lower_is_better = true};

TEST_CASE("without a claim the baseline's interval is tolerated, from 2 % to 5 %", "[as_good]") {
  CHECK(judged(98, baseline()) == true);
  CHECK(judged(97.75, baseline()) == false);
  CHECK(judged(97, baseline(3)) == true);
  CHECK(judged(96.75, baseline(3)) == false);
  CHECK(judged(95, baseline(9)) == true);
  CHECK(judged(94.75, baseline(9)) == false);
  CHECK(judged(102, baseline(), {}, perplexity) == true);
  CHECK(judged(102.25, baseline(), {}, perplexity) == false);
  CHECK(judged(50, baseline(), {}, perplexity) == true);
}

TEST_CASE("a claim's tolerance for the arm counts, whatever it expects", "[as_good]") {
  const auto claimed = [](Expected expected) {
    return std::vector<Expectation>{{"ours", "theirs", expected, 0.5}};
  };
  CHECK(judged(99.5, baseline(), claimed(Expected::as_good)) == true);
  CHECK(judged(99.25, baseline(), claimed(Expected::as_good)) == false);
  CHECK(judged(99.25, baseline(), claimed(Expected::worse)) == false);
  CHECK(judged(99.5, baseline(), claimed(Expected::worse)) == true);
  CHECK(judged(99.25, baseline(), {{"other", "theirs", Expected::as_good, 0.5}}) == true);
  ArmSummary scattered = baseline();
  scattered.values = {97.0, 103.0};
  CHECK(judged(94, scattered, claimed(Expected::within_seeds)) == true);
  CHECK(judged(93.75, scattered, claimed(Expected::within_seeds)) == false);
}

TEST_CASE("an arm that diverged is not as good, and one without a baseline is not judged", "[as_good]") {
  ExperimentSummary summary{.metric = {}, .arms = {diverged_arm("ours", 1, 3, 100), baseline()}};
  CHECK(as_good({}, summary, summary.arms[0]) == std::nullopt);
  summary.arms[0].baseline = "theirs";
  CHECK(as_good({}, summary, summary.arms[0]) == false);
  summary.arms[1].mean.reset();
  CHECK(as_good({}, summary, summary.arms[0]) == std::nullopt);
}

}  // namespace
}  // namespace halfscope::as_good_test
