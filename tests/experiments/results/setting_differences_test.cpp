// Settings of runs against their experiment's, and the verdicts that they cost.
#include "experiments/results/setting_differences.hpp"

#include <nlohmann/json.hpp>

#include "experiments/results/report_text.hpp"
#include "experiments/results/run_records.hpp"
#include "experiments/results/summarise.hpp"
#include "experiments/results/verdict.hpp"
#include "experiments/run/run_experiments.hpp"
#include "tests/experiments/synthetic_runs.hpp"
#include "tests/experiments/tiny_experiment.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::setting_differences_test {
namespace {

void train(const Place& place, std::vector<std::string> arms, const Settings& settings,
           RunSize size = RunSize::small, std::int64_t seeds = 1) {
  RunRequest request = place.request(std::move(arms), seeds);
  request.settings = with(request.settings, settings);
  request.size = size;
  request.resume = true;
  REQUIRE(run_experiments({{tiny(), request}}).failures.empty());
}

ExperimentSummary summary_of(const Place& place) {
  return summarise(tiny(), place.out / "tiny");
}

TEST_CASE("runs with the experiment's settings have a verdict at each size but smoke",
          "[setting_differences]") {
  for (const RunSize size : {RunSize::small, RunSize::full, RunSize::smoke}) {
    const Place place;
    train(place, {"fp32", "fp16_mixed"}, {{"checkpoint_every", "3"}, {"evaluate_every", "1"}}, size);
    const ExperimentSummary summary = summary_of(place);
    CHECK(summary.settings.size == size);
    CHECK(summary.settings.differences.empty());
    CHECK(verdict_on(tiny(), summary).text.empty() == (size == RunSize::smoke));
    CHECK(verdict_on(tiny(), summary).withheld.empty() == (size != RunSize::smoke));
  }
}

TEST_CASE("a setting that differs is named with its arms", "[setting_differences]") {
  const Place place;
  train(place, {"fp32"}, {});
  train(place, {"fp16_mixed"}, {{"learning_rate", "0.5"}, {"observe_every", "2"}});
  const ExperimentSummary summary = summary_of(place);
  CHECK(to_string(summary.settings.differences) ==
        "learning_rate = 0.5 (own: 0.001) in fp16_mixed; observe_every = 2 (own: 3) in fp16_mixed");
  CHECK(verdict_on(tiny(), summary).text.empty());
  const std::string table = to_table(tiny(), summary);
  check_says(table, {"settings: learning_rate = 0.5", "verdict: none; "});
}

TEST_CASE("settings that only count, or that all runs have, are told apart", "[setting_differences]") {
  const Place place;
  train(place, {"fp32", "fp16_mixed"}, {{"observe_every", "2"}});
  const ExperimentSummary summary = summary_of(place);
  CHECK(to_string(summary.settings.differences) == "observe_every = 2 (own: 3)");
  CHECK_FALSE(verdict_on(tiny(), summary).text.empty());
}

TEST_CASE("seeds that were trained differently have no mean", "[setting_differences]") {
  const Place place;
  train(place, {"fp32"}, {}, RunSize::small, 2);
  std::filesystem::remove_all(place.run("fp32", 0));
  train(place, {"fp32"}, {{"steps", "4"}}, RunSize::small, 1);
  const ExperimentSummary summary = summary_of(place);
  REQUIRE(summary.arms.size() == 1);
  CHECK_FALSE(summary.arms[0].mean);
  CHECK(summary.arms[0].values.size() == 2);
  CHECK(summary.arms[0].mixed == std::vector<std::string>{"steps"});
  check_says(to_table(tiny(), summary), {"fp32: no mean, since its seeds differ in steps"});
}

TEST_CASE("only folders called by their seed are runs", "[run_records]") {
  const TemporaryFolder folder;
  put_run(folder, "one", 0);
  put_run(folder, "one", 7);
  for (const char* name : {"backup", "seed", "seedx", "seed-1", "seed0.old"})
    folder.put(std::string("one/") + name + "/summary.json", "{}");
  folder.put("one/seed3/status", "FAILED: no memory\n");
  folder.put("one/seed2/config.json", "{}");
  const ArmRuns runs = RunRecords(folder.path()).of_arm("one");
  REQUIRE(runs.finished.size() == 2);
  CHECK((runs.finished[0].seed == 0 && runs.finished[1].seed == 7));
  REQUIRE(runs.unfinished.size() == 2);
  CHECK((runs.unfinished[0].seed == 2 && runs.unfinished[0].status == "no status"));
  CHECK((runs.unfinished[1].seed == 3 && runs.unfinished[1].status == "FAILED: no memory"));
  const ExperimentSummary summary =
      summarise({.name = "e", .varied = {}, .arms = {{"one", "", {}}}}, folder.path());
  check_says(to_table({.name = "e", .varied = {}, .arms = {{"one", "", {}}}}, summary),
             {"no result: one seed 3: FAILED: no memory"});
}

TEST_CASE("a record of the wrong type is refused with file, key and value", "[run_records]") {
  const auto refusal = [](const Json& changes) {
    const TemporaryFolder folder;
    put_run(folder, "one", 0, changes);
    return message_of<InvalidArgument>([&] { (void)RunRecords(folder.path()).of_arm("one"); });
  };
  check_says(refusal({{"diverged", "false"}}),
             {"seed0/summary.json: diverged is \"false\"", "true or false"});
  check_says(refusal({{"gradients", nullptr}}), {"gradients is null", "an object"});
  check_says(refusal({{"gradients", Json::object()}}), {"'nonzero'"});
  check_says(refusal({{"gradients", {{"nonzero", 1}, {"flushed", 1.5}}}}), {"flushed is 1.5"});
  check_says(refusal({{"diverged", true}}), {"diverged_step is null"});
  check_says(refusal({{"overflows", {1}}}), {"overflows is [1]"});
  check_says(refusal({{"metric", "x"}}), {"metric is \"x\""});
  check_says(refusal({{"seed", 3}}), {"it is of seed 3"});
  check_says(refusal({{"seed", 1e300}}), {"seed is 1e+300"});
}

}  // namespace
}  // namespace halfscope::setting_differences_test
