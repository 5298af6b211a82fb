// Arms that start from another's weights: the order of their runs, and what happens where that one fails.
#include <halfscope/core/parallel.hpp>

#include <algorithm>

#include "experiments/run/run_experiments.hpp"
#include "experiments/run/run_queue.hpp"
#include "tests/experiments/tiny_experiment.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::start_from_test {
namespace {

/// `tiny` with an arm "tuned" that starts from "first", and one that starts from that.
Experiment chained() {
  Experiment experiment = tiny();
  experiment.arms = {{"again", "", {{"start_from", "arm:tuned"}}},
                     {"tuned", "", {{"start_from", "arm:first"}, {"policy", "fp16_mixed"}}},
                     {"own", "", {}},
                     {"first", "", {}}};
  experiment.quick_arms = {"tuned"};
  experiment.full_arms = {"tuned"};
  experiment.varied = {"policy", "start_from"};
  experiment.verdict.clear();
  return experiment;
}

std::vector<std::string> planned(const Experiment& experiment, const RunRequest& request) {
  std::vector<std::string> runs;
  for (const PlannedRun& run : settled_runs(experiment, request))
    runs.push_back(fmt::format("{}/{}", run.folder.identity().arm, run.folder.identity().seed));
  return runs;
}

TEST_CASE("sources come first, those of all seeds before what starts from them", "[start]") {
  const Place place;
  using Runs = std::vector<std::string>;
  CHECK(planned(chained(), place.request({}, 2)) ==
        Runs{"first/0", "own/0", "first/1", "own/1", "tuned/0", "again/0", "tuned/1", "again/1"});
  CHECK(planned(chained(), place.request({"again"}, 1)) == Runs{"first/0", "tuned/0", "again/0"});
  CHECK(planned(chained(), place.request({"own"}, 1)) == Runs{"own/0"});
  CHECK(planned(tiny(), place.request({}, 2)) == Runs{"fp32/0", "fp16_mixed/0", "fp32/1", "fp16_mixed/1"});
}

TEST_CASE("an arm that starts from one and learns from another comes behind both", "[start]") {
  const Place place;
  using Runs = std::vector<std::string>;
  Experiment experiment = chained();
  experiment.arms[2].settings = {{"teacher", "arm:again"}, {"start_from", "arm:first"}};
  CHECK(planned(experiment, place.request({"own"}, 1)) == Runs{"first/0", "tuned/0", "again/0", "own/0"});
  experiment.arms[3].settings = {{"teacher", "arm:own"}};
  check_says(message_of<InvalidArgument>([&] { (void)settled_runs(experiment, place.request({"own"})); }),
             {"arm own", "teacher", "leads back"});
}

TEST_CASE("arms that start from others leave the same bytes for any number of jobs", "[start]") {
  const Place place;
  set_thread_count(1);
  std::vector<std::string> checkpoints;
  for (const std::size_t jobs : {1u, 2u, 5u}) {
    RunRequest request = place.request({}, 2);
    request.out = place.folder / fmt::format("jobs{}", jobs);
    CHECK(train_runs(plan_runs({{chained(), request}}), jobs).empty());
    std::string bytes;
    for (const PlannedRun& run : settled_runs(chained(), request))
      bytes += read_file(run.folder.checkpoint_path()) + read_file(run.folder.path() / "metrics.jsonl");
    checkpoints.push_back(std::move(bytes));
  }
  CHECK((checkpoints[0] == checkpoints[1]));
  CHECK((checkpoints[0] == checkpoints[2]));
}

TEST_CASE("an arm that is resumed starts from the source that is there", "[start]") {
  const Place place;
  CHECK(run_experiments({{chained(), place.request({"tuned"})}}).failures.empty());
  const std::string first = read_file(place.out / "tiny/first/seed0/summary.json"),
                    tuned = read_file(place.out / "tiny/tuned/seed0/metrics.jsonl");
  std::filesystem::remove_all(place.out / "tiny/tuned");
  RunRequest again = place.request({"tuned"});
  again.resume = true;
  CHECK(run_experiments({{chained(), again}}).failures.empty());
  CHECK(read_file(place.out / "tiny/first/seed0/summary.json") == first);
  CHECK(read_file(place.out / "tiny/tuned/seed0/metrics.jsonl") == tuned);
  CHECK(place.config("tuned")["start_from"] == "arm:first");
  CHECK(place.config("first").at("start_from") == "");
}

TEST_CASE("what starts from a run that fails is not trained", "[start]") {
  for (const std::size_t jobs : {1u, 2u}) {
    const Place place;
    Experiment experiment = chained();
    experiment.arms[3].settings = failing_arm().settings;
    const RequestedExperiment requested{experiment, place.request({"tuned", "own"})};
    const std::vector<std::string> failures =
        run_experiments({requested}, {.jobs = static_cast<int>(jobs)}).failures;
    REQUIRE(failures.size() == 2);
    check_says(failures[0], {"tiny first seed 0", "loss scale is at its minimum"});
    check_says(failures[1], {"tiny tuned seed 0", "first seed 0", "failed"});
    CHECK(place.status("own") == "DONE\n");
    CHECK_FALSE(std::filesystem::exists(place.out / "tiny/tuned/seed0/config.json"));
  }
}

TEST_CASE("arms that start from each other or from none that is there are refused", "[start]") {
  const Place place;
  Experiment experiment = chained();
  experiment.arms[3].settings.emplace_back("start_from", "arm:again");
  check_says(message_of<InvalidArgument>([&] {
               (void)settled_runs(experiment, place.request({"own", "tuned"}));
             }),
             {"arm tuned", "leads back"});
  experiment.arms[3].settings.back().second = "arm:frist";
  check_says(message_of<InvalidArgument>([&] { (void)settled_runs(experiment, place.request({"first"})); }),
             {"frist", "first"});
}

TEST_CASE("a config.json of an arm is of that arm alone, not of its source", "[start]") {
  const Place place;
  CHECK(run_experiments({{chained(), place.request({"tuned"})}}).failures.empty());
  RunRequest again{.out = place.folder / "again", .config = place.run("tuned") / "config.json"};
  again.settings = place.request().settings;
  CHECK(run_experiments({{chained(), again}}).failures.empty());
  CHECK(read_file(again.out / "tiny/tuned/seed0/metrics.jsonl") ==
        read_file(place.out / "tiny/tuned/seed0/metrics.jsonl"));
}

}  // namespace
}  // namespace halfscope::start_from_test
