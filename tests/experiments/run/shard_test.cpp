// Shares of a list of runs, and the list that a sweep keeps.
#include "experiments/run/shard.hpp"

#include <halfscope/io/file.hpp>

#include "experiments/results/summarise.hpp"
#include "experiments/results/sweep_runs.hpp"
#include "tests/experiments/synthetic_runs.hpp"
#include "tests/experiments/tiny_experiment.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace halfscope::shard_test {
namespace {

std::vector<std::string> names(const std::vector<PlannedRun>& runs) {
  std::vector<std::string> all;
  for (const PlannedRun& run : runs)
    all.push_back(fmt::format("{}/{}", run.folder.identity().arm, run.folder.identity().seed));
  return all;
}

TEST_CASE("every run is in one share of any number of them", "[shard]") {
  const Place place;
  const std::vector<PlannedRun> runs = settled_runs(tiny(), place.request({}, 5));
  REQUIRE(runs.size() == 10);
  for (const std::int64_t count : {1, 2, 3, 9, 10, 11}) {
    std::vector<std::string> found;
    for (std::int64_t index = 1; index <= count; ++index) {
      const std::vector<std::string> own = names(runs_of_shard(runs, {index, count}));
      CHECK(own == names(share_of(runs, {index, count})));
      found.insert(found.end(), own.begin(), own.end());
    }
    CHECK(found.size() == 10);
    std::vector<std::string> all = names(runs);
    CHECK(std::ranges::is_permutation(found, all));
  }
  CHECK(names(share_of(runs, {2, 4})) ==
        std::vector<std::string>{names(runs)[1], names(runs)[5], names(runs)[9]});
}

TEST_CASE("a share trains the runs that its own start from, and theirs, unless they are done", "[shard]") {
  const Place place;
  Experiment staged = tiny();
  staged.arms = {{"first", "", {}},
                 {"second", "", {{"start_from", "arm:first"}}},
                 {"third", "", {{"start_from", "arm:second"}}}};
  const std::vector<PlannedRun> runs = settled_runs(staged, place.request({}, 2));
  using Names = std::vector<std::string>;
  REQUIRE(names(runs)[5] == "third/1");
  CHECK(names(share_of(runs, {6, 6})) == Names{"third/1"});
  CHECK(names(runs_of_shard(runs, {6, 6})) == Names{"first/1", "second/1", "third/1"});
  create_folder(place.run("second", 1));
  write_file(place.run("second", 1) / "status", "DONE\n");
  write_file(place.run("second", 1) / "summary.json", "{}\n");
  CHECK(names(runs_of_shard(runs, {6, 6})) == Names{"third/1"});
}

TEST_CASE("shares are read, and refused where they are none", "[shard]") {
  const Shard shard = parse_shard("2/12");
  CHECK((shard.index == 2 && shard.count == 12 && !shard.is_whole()));
  CHECK(parse_shard("1/1").is_whole());
  for (const char* text : {"", "2", "0/3", "4/3", "1/0", "a/b", "1/2/3", "-1/3", "1/ 3", "1/3x"})
    check_says(message_of<InvalidArgument>([&] { (void)parse_shard(text); }), {"--shard", text, "2/12"});
}

SweepRuns seeds_by_arm(const RunRequest& request) {
  SweepRuns seeds;
  for (const PlannedRun& run : settled_runs(tiny(), request))
    seeds[run.folder.identity().arm].insert(run.folder.identity().seed);
  return seeds;
}

TEST_CASE("a sweep's list grows by later requests, and says what has not begun", "[shard]") {
  const TemporaryFolder folder;
  const Place place;
  CHECK(read_sweep(folder.path()).empty());
  add_to_sweep(folder.path(), seeds_by_arm(place.request({"fp32"}, 2)));
  const std::string once = read_file(folder / "sweep.json");
  add_to_sweep(folder.path(), seeds_by_arm(place.request({"fp32"}, 2)));
  CHECK(read_file(folder / "sweep.json") == once);
  add_to_sweep(folder.path(), seeds_by_arm(place.request({}, 1)));
  CHECK(read_sweep(folder.path()) == SweepRuns{{"fp32", {0, 1}}, {"fp16_mixed", {0}}});
  put_run(folder, "fp32", 1);
  folder.put("fp16_mixed/seed0/status", "RUNNING\n");
  const ExperimentSummary summary = summarise(tiny(), folder.path());
  REQUIRE(summary.unfinished.size() == 2);
  CHECK((summary.unfinished[0].arm == "fp32" && summary.unfinished[0].seed == 0));
  CHECK(summary.unfinished[0].status == not_begun_status);
  CHECK(summary.unfinished[1].status == "RUNNING");
}

}  // namespace
}  // namespace halfscope::shard_test
