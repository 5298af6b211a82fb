// Scalers over a log, with the least and the greatest gradients that it allows, and the verdict.
#include <halfscope/scaling/skip_log_replay.hpp>

#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::skip_log_replay_test {
namespace {

void take(SkipLogReplay& replay, const std::vector<LoggedStep>& steps) {
  SkipLog log;
  log.steps = steps;
  replay.take(log);
}

std::vector<std::int64_t> overflows(const TraceReplay& replay, std::size_t index) {
  return replay.candidates()[index].replay.overflows();
}

TEST_CASE("a log decides what a scaler does up to the scale that it was recorded at", "[skip_log]") {
  const std::vector<LoggedStep> log{{1, 32, true}, {2, 16}, {3, 16}, {4, 16},
                                    {5, 16, true}, {6, 8},  {7, 8},  {8, 8}};
  SkipLogReplay dynamic({"dynamic"}, {{"initial_scale", 16}, {"growth_interval", 3}});
  take(dynamic, log);
  // The first step was skipped at 32: what it would have done at 16 is not known.
  CHECK(dynamic.first_unsure(0) == 1);
  CHECK(overflows(dynamic.least(), 0) == std::vector<std::int64_t>{5});
  CHECK(overflows(dynamic.greatest(), 0) == std::vector<std::int64_t>{1, 5});
  SkipLogReplay constant({"8", "16", "32"}, {});
  take(constant, log);
  CHECK(constant.first_unsure(0) == 1);
  CHECK(overflows(constant.least(), 0).empty());
  CHECK(overflows(constant.greatest(), 0) == std::vector<std::int64_t>{1, 5});
  CHECK(constant.first_unsure(1) == 1);
  CHECK(overflows(constant.least(), 1) == std::vector<std::int64_t>{5});
  CHECK(overflows(constant.greatest(), 1) == std::vector<std::int64_t>{1, 5, 6, 7, 8});
  CHECK(constant.first_unsure(2) == 2);
  CHECK(overflows(constant.least(), 2) == std::vector<std::int64_t>{1, 5});
}

TEST_CASE("verdicts tell skips of the start-up, regular ones and late ones apart", "[skip_log]") {
  SkipLog log;
  const auto add = [&](double scale, bool skipped) {
    log.steps.push_back({std::ssize(log.steps) + 1, scale, skipped});
  };
  for (const double scale : {65536.0, 32768.0, 16384.0}) add(scale, true);
  for (int i = 0; i < 50; ++i) add(8192, false);
  check_says(verdict_of(log), {"3 steps skipped at the start", "2^16 to 2^13", "harmless"});
  for (int cycle = 0; cycle < 4; ++cycle) {
    add(16384, true);
    for (int i = 0; i < 50; ++i) add(8192, false);
  }
  check_says(verdict_of(log),
             {"3 steps skipped at the start", "4 steps skipped later, regularly", "largest scale of 2^13"});
  log.steps.erase(log.steps.begin(), log.steps.begin() + 100);
  for (int i = 0; i < 500; ++i) add(8192, false);
  add(8192, true);
  add(4096, false);
  check_says(verdict_of(log), {"skipped later; a largest scale of 2^12"});
  log.steps.assign({{1, 65536, true}, {2, 32768}, {9, 32768, true}, {10, 16384}});
  CHECK(verdict_of(log) ==
        "1 step skipped at the start, while the scale fell from 2^16 to 2^15: harmless; an initial scale of "
        "2^15 "
        "spares it. 1 step skipped later; a largest scale of 2^14 would spare it (max_scale).");
  log.steps.assign({{1, 8}, {2, 8}});
  CHECK(verdict_of(log) == "No step was skipped.");
  log.steps.assign({{1, 8, true}, {2, 4, true}});
  check_says(verdict_of(log), {"All 2 steps", "down to a scale of 2^2"});
  log.steps.pop_back();
  CHECK(verdict_of(log) ==
        "The one step that the log tells of was skipped, at a scale of 2^3; it ends before one was not.");
}

TEST_CASE("the gradients' norm bounds the largest of them", "[skip_log]") {
  const double norm = 1.0;  // 65520 is reached between 2^15 and 2^16
  SkipLogReplay replay({"32768", "65536"}, {});
  take(replay, {{1, 2, false, norm}, {2, 2, false, norm}});
  CHECK(replay.first_unsure(0) == std::nullopt);
  CHECK(replay.first_unsure(1) == 1);
}

TEST_CASE("steps between those of a log are replayed as not skipped", "[skip_log]") {
  SkipLogReplay replay({"dynamic"}, {{"initial_scale", 1}, {"growth_interval", 10}});
  take(replay, {{1, 64}, {40, 64}, {41, 64}});
  CHECK(replay.least().candidates()[0].replay.scales() == std::vector<double>{1, 8, 16});
  CHECK(replay.first_unsure(0) == std::nullopt);
}

TEST_CASE("scalers that look at magnitudes are left out of all, and refused by name", "[skip_log]") {
  CHECK(SkipLogReplay({"all"}, {}).least().left_out() ==
        std::vector<std::string>{"openseq2seq_logmax", "popart", "headroom"});
  const auto message = [](const char* name) {
    return message_of<InvalidArgument>([&] { (void)SkipLogReplay({"dynamic", name}, {}); });
  };
  check_says(message("headroom"), {"headroom", "largest magnitude", "a log of skipped steps"});
  check_says(message("popart"), {"popart", "histogram"});
}

}  // namespace
}  // namespace halfscope::skip_log_replay_test
