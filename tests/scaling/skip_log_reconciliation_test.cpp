// Lines of several kinds put together: what one of them tells is not lost by another, and holes are unknown.
#include <halfscope/scaling/skip_log_replay.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/log_lines.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::skip_log_reconciliation_test {
namespace {

std::vector<std::int64_t> overflows(const TraceReplay& replay, std::size_t index) {
  return replay.candidates()[index].replay.overflows();
}

TEST_CASE("overflow lines between iteration lines are skipped steps, whatever the counter says",
          "[skip_log]") {
  const SkipLog log =
      read_log({iteration_line(1, "65536.0", 0), overflow_line("65536", ", reducing to 32768"),
                iteration_line(2, "32768.0", 0), step_line(2, 1), iteration_line(3, "32768.0", 0)});
  CHECK(text_of(log) == "1 finite at 65536, 2 skipped at 65536, 3 finite at 32768");
  CHECK(log.format == "megatron_deepspeed");
  CHECK(log.uncounted == 1);
  const RecordedRun run = recorded_run(log);
  CHECK(run.skips == std::vector<std::int64_t>{2});
  CHECK(run.scales == std::vector<double>{65536, 65536, 32768});
  CHECK(std::ranges::find(run.reproduced_by, "dynamic") != run.reproduced_by.end());
}

TEST_CASE("a falling scale tells of skipped steps, and a norm of 0 of nothing", "[skip_log]") {
  const SkipLog log =
      read_log({iteration_line(1, "65536.0", 0, "0.000"), iteration_line(2, "8192.0", 0, "0.000"),
                iteration_line(3, "8192.0", 0, "0.000")});
  CHECK(text_of(log) == "1 finite at 65536, 2 skipped at 65536, 3 finite at 8192");
  CHECK(log.uncounted == 1);
  CHECK_FALSE(log.steps[0].grad_norm);
  const SkipLog several = read_log({iteration_line(10, "65536.0", 0), iteration_line(20, "4096.0", 1)});
  CHECK(several.skipped == 4);
  CHECK(several.uncounted == 3);
}

TEST_CASE("a scale that falls further than the steps can lower it is an interval", "[skip_log]") {
  const SkipLog log =
      read_log({iteration_line(1, "65536.0", 0, "0.000"), iteration_line(2, "8192.0", 0, "0.000")});
  CHECK(text_of(log) == "1 finite at 65536, 2 skipped at 65536");
  CHECK(log.hidden_skips == 2);
  CHECK(log.next_scale == 8192);
  CHECK(
      verdict_of(log) ==
      "1 to 3 steps skipped at the start, while the scale fell from 2^16 to 2^13: harmless; an initial scale "
      "of 2^13 spares them. Read from lines 1 to 2.");
  const RecordedRun run = recorded_run(log);
  CHECK(run.next_scale == 8192);
  CHECK(run.reproduced_by.empty());  // by a halving of every scaler's the scale would be 2^15
  // As far as the steps reach there is nothing hidden, be it one or several a line.
  const SkipLog halved = read_log({iteration_line(1, "65536.0", 0), iteration_line(2, "32768.0", 0)});
  CHECK(halved.hidden_skips == 0);
  CHECK_FALSE(recorded_run(halved).reproduced_by.empty());
  CHECK(read_log({iteration_line(3, "65536.0", 0), iteration_line(6, "8192.0", 0)}).hidden_skips == 0);
  CHECK(read_log({iteration_line(1, "65536.0", 0), overflow_line("65536", ", reducing to 32768"),
                  iteration_line(2, "8192.0", 0)})
            .hidden_skips == 2);
}

TEST_CASE("the scale that the last step leaves is told by whatever line tells it", "[skip_log]") {
  CHECK(read_log({overflow_line("2", ", reducing to 1"), step_line(1, 1)}).next_scale == 1);
  CHECK(read_log({overflow_line("2", ", reducing to 1")}).next_scale == 1);
  CHECK(read_log({overflow_line("8", ", reducing to 4"), step_line(2, 1)}).next_scale == std::nullopt);
  CHECK(read_log({iteration_line(1, "8.0", 0), overflow_line("8", ", reducing to 4")}).next_scale == 4);
  const std::string end = "Exception: Current loss scale already at minimum - cannot decrease scale anymore.";
  CHECK(read_log({overflow_line("2", ", reducing to 1"), step_line(1, 1), end}).next_scale == std::nullopt);
}

TEST_CASE("a scale that falls too far late in a run asks for a smaller largest scale", "[skip_log]") {
  std::vector<std::string> lines;
  for (int i = 1; i < 20; ++i) lines.push_back(iteration_line(i, "65536.0", 0));
  lines.push_back(iteration_line(20, "8192.0", 0));
  CHECK(verdict_of(read_log(lines)) ==
        "1 to 3 steps skipped later; a largest scale of 2^13 would spare them (max_scale). Read from "
        "lines 1 to 20.");
}

TEST_CASE("a norm that is not finite loses the weights where nothing skips the step", "[skip_log]") {
  for (const char* scale : {"1.0", "-1.0"}) {
    const SkipLog log = read_log({iteration_line(412, scale, 0), iteration_line(413, scale, 0, "nan"),
                                  iteration_line(414, scale, 0, "inf")});
    CHECK_FALSE(log.has_scaler);
    CHECK(log.lost_from() == 413);
    SkipLogReplay replay({"1", "1024"}, {});
    replay.take(log);
    for (const std::size_t index : {std::size_t{0}, std::size_t{1}}) {
      CHECK(overflows(replay.least(), index) == std::vector<std::int64_t>{413, 414});
      CHECK(overflows(replay.greatest(), index) == std::vector<std::int64_t>{413, 414});
    }
    check_says(verdict_of(log), {"No loss scaler", "lost from step 413"});
  }
  CHECK(read_log({iteration_line(1, "8.0", 1, "nan"), iteration_line(2, "8.0", 0)}).lost_from() ==
        std::nullopt);
  std::string counted_nan = iteration_line(7, "1.0", 0);
  counted_nan.replace(counted_nan.find("nan iterations:   0"), 19, "nan iterations:   1");
  CHECK(read_log({iteration_line(6, "1.0", 0), counted_nan}).lost_from() == 7);
}

TEST_CASE("weights are lost somewhere between two lines", "[skip_log]") {
  const SkipLog log = read_log({iteration_line(10, "64.0", 0), iteration_line(20, "64.0", 0, "nan")});
  CHECK(log.lost_from() == 20);
  check_says(verdict_of(log), {"lost from one of the steps 11 to 20 on"});
  SkipLogReplay replay({"64", "32"}, {});
  replay.take(log);
  CHECK(overflows(replay.least(), 0) == std::vector<std::int64_t>{20});
  CHECK(overflows(replay.greatest(), 1).size() == 10);
}

TEST_CASE("a log without a scaler bounds gradients by their norm alone", "[skip_log]") {
  const std::string without = " iteration 2/ 9 | lm loss: 7.1 | number of skipped iterations: 0 |";
  const SkipLog log = read_log({iteration_line(1, "1.0", 0, "2.000"), without});
  CHECK_FALSE(log.has_scaler);
  SkipLogReplay replay({"1", "65536"}, {});
  replay.take(log);
  CHECK(overflows(replay.greatest(), 0) == std::vector<std::int64_t>{2});
  CHECK(overflows(replay.greatest(), 1) == std::vector<std::int64_t>{1, 2});
  CHECK(overflows(replay.least(), 1).empty());
}

TEST_CASE("an overflow behind a line of iteration 0 is the first step", "[skip_log]") {
  CHECK(text_of(read_log({"step,loss_scale,grad_norm", "0,64,", overflow_line("64", ", reducing to 32")})) ==
        "1 skipped at 64");
  CHECK(text_of(read_log({iteration_line(0, "64", 0), overflow_line("64", ", reducing to 32")})) ==
        "1 skipped at 64");
}

TEST_CASE("a count that falls back to 0 leaves no step open", "[skip_log]") {
  const SkipLog log =
      read_log({"step,loss_scale", "2,64", overflow_line("64", ", reducing to 32"), "0,64", "1,64", "2,64"});
  CHECK(text_of(log) == "1 finite at 64, 2 finite at 64");
  CHECK(log.unknown_steps == 0);
}

TEST_CASE("overflow lines tell the scale of iterations that print none", "[skip_log]") {
  const std::string without = " iteration 4/ 9 | lm loss: 7.1 | number of skipped iterations: 3 |";
  const SkipLog log = read_log({overflow_line("64", ", reducing to 32"), without});
  CHECK(text_of(log) == "2 skipped at 128, 3 skipped at 128, 4 skipped at 64");
  for (const LoggedStep& step : log.steps) CHECK(step.low <= step.high);
}

TEST_CASE("steps in holes may be anything", "[skip_log]") {
  const SkipLog log = read_log({iteration_line(10, "65536.0", 0), iteration_line(20, "65536.0", 0),
                                iteration_line(30, "65536.0", 0), iteration_line(1000, "8192.0", 0),
                                iteration_line(1010, "8192.0", 0)});
  CHECK(log.unknown_steps == 960);
  CHECK(log.skipped_in_holes == 3);
  CHECK(log.step_count() == 1010);
  SkipLogReplay replay({"8192"}, {});
  replay.take(log);
  CHECK(overflows(replay.least(), 0).empty());
  CHECK(overflows(replay.greatest(), 0).size() == 969);  // and nine where the scale may have grown
  check_says(verdict_of(log), {"At least 3 steps", "holes"});
}

TEST_CASE("overflows without a counter, to the smallest scale, are incurable", "[skip_log]") {
  std::vector<std::string> lines{overflow_line("65536", ", but hysteresis is 2. Reducing hysteresis to 1")};
  for (int scale = 65536; scale > 1; scale /= 2)
    lines.push_back(overflow_line(std::to_string(scale), ", reducing to " + std::to_string(scale / 2)));
  const std::string exception =
      "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.";
  lines.insert(lines.end(), {exception, exception});
  const SkipLog log = read_log(lines);
  CHECK(log.skipped == 18);
  CHECK(log.ended == 18);
  CHECK_FALSE(log.counts_steps);
  CHECK(log.steps.back().scale == 1);
  SkipLogReplay replay({"1", "8", "deepspeed"}, {});
  replay.take(log);
  CHECK(overflows(replay.least(), 0) == std::vector<std::int64_t>{18});
  CHECK(overflows(replay.greatest(), 0).size() == 18);
  CHECK(overflows(replay.greatest(), 1).size() == 18);
  CHECK(replay.first_unsure(2) == std::nullopt);
  check_says(verdict_of(log),
             {"No loss scale cures this", "18 steps skipped, at scales from 2^16 to 2^0", "first_overflow"});
}

TEST_CASE("a run that ends at a minimum above 1 tells of no smaller scale", "[skip_log]") {
  const std::string ending =
      "Exception: Current loss scale already at minimum - cannot decrease scale anymore.";
  const SkipLog log = read_log({overflow_line("256", ", reducing to 128"), ending});
  CHECK(log.ended == 2);
  CHECK(
      verdict_of(log) ==
      "The run ended at the scaler's minimum, 2^7, where the step overflows as well: a smaller minimum shows "
      "whether a scale cures it (DeepSpeed: min_loss_scale). 2 steps skipped, at scales from 2^8 to 2^7; no "
      "line "
      "counts steps, so that those between and behind them are not known. Read from line 1.");
}

}  // namespace
}  // namespace halfscope::skip_log_reconciliation_test
