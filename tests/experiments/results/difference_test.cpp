// Differences of arms over their seeds: pairs, intervals, scales, runs that diverged.
#include "experiments/results/difference.hpp"

#include <cmath>

#include "tests/experiments/summaries.hpp"
#include "tests/support/catch.hpp"

namespace halfscope::difference_test {
namespace {

const ReportedMetric accuracy{};
const ReportedMetric loss{
    .name = "loss", .unit = "", .comparison = Comparison::difference, .lower_is_better = true};
const ReportedMetric perplexity{
    .name = "perplexity", .unit = "", .comparison = Comparison::ratio, .lower_is_better = true};
const ReportedMetric share{.name = "share", .unit = "", .comparison = Comparison::ratio};

/// 97.5 % quantiles of Student's distribution with 2 degrees of freedom, to nine digits.
constexpr double t2 = 4.30265273;

void check_interval(const Difference& difference, double behind, double low, double high) {
  REQUIRE(difference.low.has_value());
  CHECK(*difference.behind == Approx(behind).margin(1e-9));
  CHECK(*difference.low == Approx(low).margin(1e-7));
  CHECK(*difference.high == Approx(high).margin(1e-7));
}

TEST_CASE("seeds of two arms are paired, and the interval is of their differences", "[difference]") {
  // Seeds differ by tens, the arms by 1, 2 and 3 points: their standard error is 1 / sqrt(3).
  const ArmSummary ours = arm_of_seeds("a", {49.0, 68.0, 87.0}),
                   theirs = arm_of_seeds("b", {50.0, 70.0, 90.0});
  const Difference found = difference_of(accuracy, ours, theirs);
  CHECK(found.pairing == Pairing::by_seed);
  CHECK(found.seeds == 3);
  check_interval(found, 2, 2 - t2 / std::sqrt(3.0), 2 + t2 / std::sqrt(3.0));
  check_interval(difference_of(loss, ours, theirs), -2, -2 - t2 / std::sqrt(3.0), -2 + t2 / std::sqrt(3.0));
}

TEST_CASE("only seeds that both arms have are compared", "[difference]") {
  ArmSummary ours = arm_of_seeds("a", {0.0, 49.0, 68.0, 87.0, 0.0});
  ours.seeds = {1, 2, 3, 5, 9};
  ArmSummary theirs = arm_of_seeds("b", {1000.0, 50.0, 70.0, 90.0});
  theirs.seeds = {0, 2, 3, 5};
  const Difference found = difference_of(accuracy, ours, theirs);
  CHECK(found.seeds == 3);
  check_interval(found, 2, 2 - t2 / std::sqrt(3.0), 2 + t2 / std::sqrt(3.0));
}

TEST_CASE("differences by ratio have their interval on the logarithm", "[difference]") {
  // Ratios of 2^1, 2^2 and 2^3.
  const ArmSummary ours = arm_of_seeds("a", {4.0, 40.0, 8.0}), theirs = arm_of_seeds("b", {2.0, 10.0, 1.0});
  const double reach = t2 / std::sqrt(3.0);
  check_interval(difference_of(perplexity, ours, theirs), 3, std::exp2(2 - reach) - 1,
                 std::exp2(2 + reach) - 1);
  // Higher is better: the other arm is behind by 1 - 1/4.
  check_interval(difference_of(share, theirs, ours), 0.75, 1 - std::exp2(-2 + reach),
                 1 - std::exp2(-2 - reach));
}

TEST_CASE("values of 0 are compared as shares of the baseline's mean", "[difference]") {
  const ArmSummary ours = arm_of_seeds("a", {0.0, 12.0, 21.0}), theirs = arm_of_seeds("b", {0.0, 10.0, 20.0});
  // Differences of 0, 2 and 1 beside a mean of 10.
  check_interval(difference_of(perplexity, ours, theirs), 0.1, 0.1 - 0.1 * t2 / std::sqrt(3.0),
                 0.1 + 0.1 * t2 / std::sqrt(3.0));
}

TEST_CASE("arms without common seeds are independent samples", "[difference]") {
  // Welch: variances of the means 1/3 and 4, (1/3 + 4)^2 / (1/18 + 8) = 2.3310 degrees of freedom.
  const ArmSummary ours = arm_of_seeds("a", {9.0, 10.0, 11.0});
  ArmSummary theirs = arm_of_seeds("b", {20.0 - std::sqrt(12.0), 20.0, 20.0 + std::sqrt(12.0)});
  theirs.seeds = {10, 11, 12};
  const Difference found = difference_of(accuracy, ours, theirs);
  CHECK(found.pairing == Pairing::independent);
  CHECK(*found.behind == Approx(10));
  // The 97.5 % quantile of 2.3310 degrees of freedom, by integration of the density.
  CHECK((*found.high - *found.low) / 2 == Approx(3.76703034 * std::sqrt(13.0 / 3)));
}

TEST_CASE("a run that diverged has no number, and is counted where it is alone", "[difference]") {
  const ArmSummary ours = arm_of_seeds("a", {{}, 68.0, {}, 49.0, 87.0, 60.0});
  const ArmSummary theirs = arm_of_seeds("b", {60.0, 70.0, {}, 50.0, 90.0, {}});
  const Difference found = difference_of(accuracy, ours, theirs);
  CHECK(found.seeds == 6);
  CHECK(found.arm_diverged_alone == 1);
  CHECK(found.baseline_diverged_alone == 1);
  check_interval(found, 2, 2 - t2 / std::sqrt(3.0), 2 + t2 / std::sqrt(3.0));
}

TEST_CASE("one pair has a difference and no interval, and mixed settings have neither", "[difference]") {
  const Difference one = difference_of(accuracy, arm_with("a", 60), arm_with("b", 62));
  CHECK(one.seeds == 1);
  CHECK(*one.behind == 2);
  CHECK_FALSE(one.low.has_value());
  ArmSummary mixed = steady_arm("a", 60);
  mixed.mixed = {"steps"};
  CHECK(difference_of(accuracy, mixed, steady_arm("b", 62)).seeds == 0);
}

}  // namespace
}  // namespace halfscope::difference_test
