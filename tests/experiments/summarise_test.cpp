// Summaries of an experiment: means and intervals over seeds, divergence, malformed runs.
#include "experiments/results/summarise.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

#include "tests/experiments/synthetic_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::summarise_test {
namespace {

Experiment two_arms() {
  return {.name = "tiny", .varied = {"policy"}, .arms = {{"one", "", {}}, {"two", "", {}}}};
}

/// The summary of arm "one", the only one in `folder`.
ArmSummary only_arm(const TemporaryFolder& folder, const Experiment& experiment = two_arms()) {
  const ExperimentSummary summary = summarise(experiment, folder.path());
  REQUIRE(summary.arms.size() == 1);
  CHECK(summary.arms[0].arm == "one");
  return summary.arms[0];
}

TEST_CASE("an arm has the mean and the interval of its seeds, in the order of the seeds", "[summarise]") {
  const TemporaryFolder folder;
  put_run(folder, "one", 10, {{"metric", 70.0}});
  put_run(folder, "one", 2, {{"metric", 61.0}});
  put_run(folder, "one", 0, {{"metric", 64.0}});
  const ArmSummary arm = only_arm(folder);
  CHECK(arm.values == std::vector<std::optional<double>>{64.0, 61.0, 70.0});
  CHECK(arm.mean == 65.0);
  const double half_width = 4.302652729911 * std::sqrt(21.0 / 3.0);  // deviations -1, -4, 5
  REQUIRE((arm.low && arm.high));
  CHECK(*arm.low == Approx(65 - half_width));
  CHECK(*arm.high == Approx(65 + half_width));
  CHECK(arm.diverged == 0);
  CHECK_FALSE(arm.diverged_step);
}

TEST_CASE("seeds that diverge count, but not into the mean", "[summarise]") {
  const TemporaryFolder folder;
  put_run(folder, "one", 0, diverged_at(40));
  put_run(folder, "one", 1, {{"metric", 62.0}});
  put_run(folder, "one", 2, diverged_at(17));
  const ArmSummary mixed = only_arm(folder);
  CHECK(mixed.values == std::vector<std::optional<double>>{std::nullopt, 62.0, std::nullopt});
  CHECK(mixed.mean == 62.0);
  CHECK_FALSE(mixed.low);  // one value scatters by nothing that is known
  CHECK_FALSE(mixed.high);
  CHECK(mixed.diverged == 2);
  CHECK(mixed.diverged_step == 17);

  put_run(folder, "one", 1, diverged_at(90));
  const ArmSummary all = only_arm(folder);
  CHECK(all.diverged == 3);
  CHECK_FALSE(all.mean);
}

TEST_CASE("an arm is judged by the experiment's own metric", "[summarise]") {
  const TemporaryFolder folder;
  put_run(folder, "one", 0, {{"train_loss", 0.25}});
  put_run(folder, "one", 1, {{"train_loss", nullptr}});  // a loss that was never finite
  Experiment experiment = two_arms();
  experiment.metric.key = "train_loss";
  const ArmSummary arm = only_arm(folder, experiment);
  CHECK(arm.mean == 0.25);
  CHECK(arm.values == std::vector<std::optional<double>>{0.25, std::nullopt});
  CHECK(arm.diverged == 0);
}

Json gradients(int nonzero, int flushed, int subnormal, int overflow) {
  return {{"nonzero", nonzero}, {"flushed", flushed}, {"subnormal", subnormal}, {"overflow", overflow}};
}

TEST_CASE("the other columns are means, the latest, the median or the most", "[summarise]") {
  const TemporaryFolder folder;
  put_run(folder, "one", 0,
          {{"lost_updates", 0.5},
           {"accuracy", 20.0},
           {"gradients", gradients(100, 40, 20, 1)},
           {"skipped", 3},
           {"last_skipped_step", 90},
           {"final_scale", 1024.0},
           {"first_at_final_scale", 7},
           {"seconds_per_step", 0.4},
           {"peak_device_bytes", nullptr},
           {"overflows", Json::array()}});
  put_run(folder, "one", 1,
          {{"lost_updates", 0.25},
           {"accuracy", 30.0},
           {"gradients", gradients(10, 2, 0, 0)},
           {"skipped", 0},
           {"last_skipped_step", nullptr},
           {"final_scale", 4096.0},
           {"first_at_final_scale", 9},
           {"seconds_per_step", 0.1},
           {"peak_device_bytes", 700},
           {"overflows", {"step 3: first"}}});
  put_run(folder, "one", 2,
          {{"gradients", gradients(0, 0, 0, 0)},
           {"last_skipped_step", 30},
           {"seconds_per_step", 0.2},
           {"peak_device_bytes", 600},
           {"memory", {{"roles", Json::array()}, {"peak_step_bytes", 5000}}},
           {"overflows", {"step 4: second"}}});
  const ArmSummary arm = only_arm(folder);
  CHECK(arm.lost_updates == 0.375);
  CHECK(arm.accuracy == 25);
  REQUIRE(arm.flushed);
  CHECK(*arm.flushed == Approx(0.3));  // of 40 % and 20 %, whatever their elements
  CHECK(arm.subnormal == 0.1);
  CHECK(arm.overflow == 0.005);
  CHECK(arm.skipped == 1.5);
  CHECK(arm.last_skipped == 90);
  CHECK(arm.final_scale_log2 == 11);
  CHECK(arm.first_at_final_scale == 8);
  CHECK(arm.seconds_per_step == 0.2);
  CHECK(arm.peak_device_bytes == 700);
  CHECK(arm.peak_step_bytes == 5000);  // other runs are of earlier versions
  CHECK(arm.overflows == std::vector<std::string>{"step 3: first"});
}

TEST_CASE("what no run says stays empty", "[summarise]") {
  const TemporaryFolder folder;
  put_run(folder, "one", 0);
  const ArmSummary arm = only_arm(folder);
  CHECK(arm.mean == 50.0);
  for (const auto& column :
       {arm.low, arm.high, arm.accuracy, arm.lost_updates, arm.flushed, arm.skipped, arm.last_skipped,
        arm.final_scale_log2, arm.seconds_per_step, arm.peak_device_bytes, arm.peak_step_bytes}) {
    CHECK_FALSE(column);
  }
  CHECK(arm.overflows.empty());
}

TEST_CASE("arms come in the experiment's order, those without a finished run not at all", "[summarise]") {
  const TemporaryFolder folder;
  CHECK(summarise(two_arms(), folder.path()).arms.empty());
  put_run(folder, "two", 0);
  folder.put("one/seed0/status", "RUNNING\n");
  put_run(folder, "stranger", 0);
  CHECK(summarise(two_arms(), folder.path()).find("one") == nullptr);
  put_run(folder, "one", 0);
  const ExperimentSummary summary = summarise(two_arms(), folder.path());
  REQUIRE(summary.arms.size() == 2);
  CHECK(summary.arms[0].arm == "one");
  CHECK(summary.find("two") == &summary.arms[1]);
  CHECK(summary.find("stranger") == nullptr);
}

TEST_CASE("a summary that is none is refused with its file", "[summarise]") {
  const auto refusal = [](const std::string& text) {
    const TemporaryFolder folder;
    folder.put("one/seed0/summary.json", text);
    return message_of<InvalidArgument>([&] { (void)summarise(two_arms(), folder.path()); });
  };
  check_says(refusal("{"), {"one/seed0/summary.json"});
  check_says(refusal(R"({"format_version":2,"seed":0})"), {"summary.json", "format 2", "format 1"});
  check_says(refusal(R"({"format_version":1,"seed":0,"diverged":false,"metric":1})"),
             {"summary.json", "lacks the key 'train_loss'"});
}

TEST_CASE("losses of all-reduces are shares of all seeds together", "[summarise]") {
  const TemporaryFolder folder;
  Json counters{
      {"elements", 100},         {"adds", 300},        {"stagnated", 30},       {"addends_flushed", 4},
      {"addends_overflowed", 0}, {"means_flushed", 0}, {"means_overflowed", 1}, {"steps", 5},
      {"stagnated_steps", 2}};
  put_run(folder, "one", 0, {{"all_reduce", counters}});
  counters["stagnated"] = 0;
  put_run(folder, "one", 1, {{"all_reduce", counters}});
  const std::optional<AllReduceLosses> losses = only_arm(folder).all_reduce;
  REQUIRE(losses);
  CHECK(losses->ranks == 4);
  CHECK(losses->stagnated == Approx(30.0 / 600));
  CHECK(losses->flushed == Approx(8.0 / 800));
  CHECK(losses->overflowed == Approx(2.0 / 200));
  CHECK(losses->stagnated_steps == Approx(4.0 / 10));
  counters.erase("adds");
  put_run(folder, "one", 1, {{"all_reduce", counters}});
  check_says(message_of<InvalidArgument>([&] { (void)summarise(two_arms(), folder.path()); }),
             {"seed1", "lacks the key 'adds'"});
}

}  // namespace
}  // namespace halfscope::summarise_test
