// Several experiments from one queue: each leaves what it leaves alone.
#include "experiments/run/run_experiments.hpp"

#include <halfscope/io/file.hpp>

#include "tests/experiments/tiny_experiment.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::several_experiments_test {
namespace {

namespace fs = std::filesystem;

Experiment tiny_called(const std::string& name) {
  Experiment experiment = tiny();
  experiment.name = name;
  return experiment;
}

TEST_CASE("experiments that are trained together leave what each leaves alone", "[runner]") {
  Experiment other = tiny_called("other");
  other.arms.pop_back();
  const Place place, alone;
  const RunsOutcome outcome =
      run_experiments({{tiny(), place.request({}, 2)}, {other, place.request()}}, {.jobs = 2});
  CHECK(outcome.failures.empty());
  REQUIRE(outcome.summaries.size() == 2);
  CHECK(outcome.summaries[0].arms.size() == 2);
  CHECK(outcome.summaries[1].arms.size() == 1);
  CHECK(run_experiments({{other, alone.request()}}).failures.empty());
  for (const char* file : {"metrics.jsonl", "histograms.jsonl", "status"}) {
    const fs::path path = fs::path("other/fp32/seed0") / file;
    CHECK(read_file(place.out / path) == read_file(alone.out / path));
  }
  CHECK(fs::exists(place.out / "tiny/summary.json"));
  CHECK(fs::exists(place.out / "other/summary.json"));
}

TEST_CASE("nothing is written where one of several experiments cannot be right", "[runner]") {
  Experiment wrong = tiny_called("wrong");
  wrong.arms.back().settings.emplace_back("batch", "1000");  // more than its data set has
  const Place place;
  check_says(message_of<InvalidArgument>([&] {
               (void)run_experiments({{tiny(), place.request()}, {wrong, place.request()}});
             }),
             {"fp16_mixed", "1000"});
  CHECK_FALSE(fs::exists(place.out));
}

TEST_CASE("an experiment of several whose summary cannot be written does not cost the others theirs",
          "[runner]") {
  const Place place;
  fs::create_directories(place.out / "tiny/summary.json/in the way");
  const RunsOutcome outcome =
      run_experiments({{tiny(), place.request()}, {tiny_called("other"), place.request()}});
  REQUIRE(outcome.failures.size() == 1);
  check_says(outcome.failures[0], {"tiny/summary.json"});
  CHECK(fs::is_regular_file(place.out / "other/summary.json"));
}

}  // namespace
}  // namespace halfscope::several_experiments_test
