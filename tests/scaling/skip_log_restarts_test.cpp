// Restarts behind the last line that counts steps: skips before them may stand in the log twice.
#include <fmt/format.h>

#include <string>
#include <vector>

#include <halfscope/scaling/skip_log_replay.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/log_lines.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::skip_log_restarts_test {
namespace {

using Lines = std::vector<std::string>;

std::string halving(int scale) {
  return overflow_line(std::to_string(scale), ", reducing to " + std::to_string(scale / 2));
}

Lines operator+(Lines lines, const Lines& more) {
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

/// A skip from 64 at each of the first `skips` steps, and a line that counts every fifth.
Lines counted_to(int steps, int skips) {
  Lines lines;
  for (int step = 1; step <= steps; ++step) {
    if (step <= skips) lines.push_back(halving(64 >> (step - 1)));
    if (step % 5 == 0) lines.push_back(step_line(step, std::min(step, skips)));
  }
  return lines;
}

TEST_CASE("skips that a restart may have taken again are no more than bounds", "[skip_log]") {
  struct Restart {
    Lines rest;
    int line = 0;  // counted from the rest on; 0: none
    std::int64_t least = 0;
  };
  // Two skips lead to a scale of 16 in eight steps.
  for (const auto& [rest, line, least] : std::vector<Restart>{
           {{halving(16), halving(8)}, 0, 4},
           {{halving(16), halving(8), halving(16), halving(8)}, 3, 2},  // behind a skip of the first attempt
           {{halving(16), halving(16), halving(16)}, 3, 1},             // twice
           {{halving(64), halving(32)}, 1, 2},                          // the first attempt skipped nothing
           {{halving(4)}, 1, 1},                                        // from a smaller scale
           {{halving(16), overflow_line("8", ", but hysteresis is 2. Reducing hysteresis to 1"), halving(8)},
            0,
            5}}) {
    const Lines before = counted_to(10, 2);
    const SkipLog log = read_log(before + rest);
    INFO(verdict_of(log));
    CHECK(log.restart.has_value() == (line > 0));
    CHECK(log.least_skipped() == least);
    CHECK(log.most_skipped() == 2 + std::ssize(rest));
    const bool is_said = verdict_of(log).find("A restart may lie before line") != std::string::npos;
    CHECK(is_said == (line > 0));
    if (line == 0) continue;
    CHECK(log.restart->line == std::ssize(before) + line);
    CHECK(recorded_run(log).reproduced_by.empty());
    SkipLogReplay replay({"64"}, {});
    replay.take(log);
    CHECK(std::ssize(replay.least().candidates()[0].replay.overflows()) == least);
    CHECK(std::ssize(replay.greatest().candidates()[0].replay.overflows()) == log.step_count());
  }
}

TEST_CASE("a scale that has had the steps to grow is no restart", "[skip_log]") {
  CHECK_FALSE(read_log(counted_to(1100, 2) + Lines{halving(32)}).restart);
  CHECK(read_log(counted_to(900, 2) + Lines{halving(32)}).restart);
  CHECK(read_log(counted_to(1100, 2) + Lines{halving(64)}).restart);  // two growths
  // The log has shown a growth after 90 steps.
  Lines grown = counted_to(100, 2);
  grown.insert(grown.end() - 1, halving(32));
  grown.back() = step_line(100, 3);
  for (const int more : {10, 120}) {
    Lines lines = grown;
    for (int step = 105; step <= 100 + more; step += 5) lines.push_back(step_line(step, 3));
    INFO(more);
    CHECK(read_whole_log(lines + Lines{halving(32)}).restart.has_value() == (more == 10));
  }
}

TEST_CASE("a restart behind lines of state is told by their scale", "[skip_log]") {
  const Lines states{iteration_line(1, "64.0", 0), iteration_line(2, "32.0", 1),
                     iteration_line(3, "32.0", 0)};
  CHECK_FALSE(read_log(states + Lines{halving(32), halving(16)}).restart);
  const SkipLog log = read_log(states + Lines{halving(32), halving(32)});
  REQUIRE(log.restart);
  CHECK(log.restart->line == 5);
  CHECK(log.least_skipped() == 1);
  CHECK(log.most_skipped() == 3);
}

}  // namespace
}  // namespace halfscope::skip_log_restarts_test
