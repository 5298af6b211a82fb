// Signals that ask for an end behind the last run. tests/experiments/interrupt_test.py has the earlier
// moments.
#include "experiments/run/stop_signals.hpp"

#include <csignal>

#include "experiments/results/summarise.hpp"
#include "experiments/run/run_experiments.hpp"
#include "tests/experiments/tiny_experiment.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::stop_signals_test {
namespace {

ExperimentSummary summarise_then_terminate(const Experiment& experiment,
                                           const std::filesystem::path& folder) {
  ExperimentSummary found = summarise(experiment, folder);
  if (StopSignals::received() == 0) CHECK(std::raise(SIGTERM) == 0);
  return found;
}

TEST_CASE("a signal behind the last run leaves the summary that was begun, and no other", "[runner]") {
  const Place place;
  const StopSignals signals;
  Experiment other = tiny();
  other.name = "other";
  const std::vector<RequestedExperiment> requested{{tiny(), place.request({"fp32"})},
                                                   {other, place.request({"fp32"})}};
  try {
    (void)run_experiments(requested, {}, summarise_then_terminate);
    FAIL("nothing was thrown");
  } catch (const StoppedBySignal& stop) {
    CHECK(stop.signal == SIGTERM);
    REQUIRE(stop.lines.size() == 1);
    check_says(stop.lines[0], {"stopped by SIGTERM", "all runs are over", "--resume"});
  }
  CHECK(std::filesystem::exists(place.out / "tiny/summary.json"));
  CHECK_FALSE(std::filesystem::exists(place.out / "other/summary.json"));
  CHECK(place.status("fp32") == "DONE\n");
}

}  // namespace
}  // namespace halfscope::stop_signals_test
