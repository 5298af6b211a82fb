// Runs in several threads: the same bytes as one after the other, and failing runs among good ones.
#include "experiments/run/run_queue.hpp"

#include <halfscope/core/parallel.hpp>

#include <map>

#include "tests/experiments/tiny_experiment.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/device_parity.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::run_queue_test {
namespace {

namespace fs = std::filesystem;

/// The files below `folder` that no time is in.
std::map<std::string, std::string> bytes_below(const fs::path& folder) {
  std::map<std::string, std::string> bytes;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().filename() == "summary.json") continue;
    bytes[fs::relative(entry.path(), folder).string()] = read_file(entry.path());
  }
  return bytes;
}

/// Files of six runs that are trained `jobs` at a time.
std::map<std::string, std::string> trained(const Place& place, RunRequest request, std::size_t jobs) {
  request.out = place.folder / fmt::format("jobs{}", jobs);
  CHECK(train_runs(plan_runs({{tiny(), request}}), jobs).empty());
  std::map<std::string, std::string> bytes = bytes_below(request.out);
  CHECK(bytes.size() == 6 * 6);
  return bytes;
}

TEST_CASE("runs leave the same bytes, however many are trained at a time", "[queue]") {
  const Place place;
  set_thread_count(1);
  RunRequest request = place.request({}, 3);
  request.settings.emplace_back("trackers", "all");
  const auto one = trained(place, request, 1);
  CHECK(trained(place, request, 2) == one);
  CHECK(trained(place, request, 9) == one);  // more than there are runs
}

TEST_CASE("runs on the device leave the same bytes, however many are trained at a time", "[queue][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  const Place place;
  RunRequest request = place.request({}, 3);
  request.settings.emplace_back("device", "cuda");
  CHECK(trained(place, request, 3) == trained(place, request, 1));
}

TEST_CASE("a run that fails does not stop those beside it", "[queue]") {
  for (const std::size_t jobs : {1u, 2u}) {
    const Place place;
    Experiment failing = tiny();
    failing.arms.insert(failing.arms.begin() + 1, failing_arm());
    const auto runs = plan_runs({{failing, place.request({}, 2)}});
    fs::create_directories(place.out / "tiny");
    write_file(place.out / "tiny/fp16_mixed", "a file in the way of a folder");
    const std::vector<std::string> failures = train_runs(runs, jobs);
    REQUIRE(failures.size() == 4);  // in the order of the runs
    check_says(failures[0], {"tiny failing seed 0: ", "loss scale is at its minimum"});
    check_says(failures[1], {"tiny fp16_mixed seed 0: cannot make the folder"});
    check_says(failures[2], {"tiny failing seed 1: "});
    check_says(failures[3], {"tiny fp16_mixed seed 1: "});
    CHECK(place.status("fp32", 0) == "DONE\n");
    CHECK(place.status("fp32", 1) == "DONE\n");
  }
}

}  // namespace
}  // namespace halfscope::run_queue_test
