// Random runs of scalers, printed as the logs of others and read again: what the log allows encloses the run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include <halfscope/scaling/detail/skip_log_reader.hpp>
#include <halfscope/scaling/scalers.hpp>
#include <halfscope/scaling/skip_log_replay.hpp>

#include "tests/support/catch.hpp"

namespace halfscope::skip_log_random_test {
namespace {

constexpr double limit = 65520;

struct RunStep {
  double scale = 1, largest = 0;  ///< max|g|, infinite where no scale helps
  bool skipped = false;
  double next = 1;  ///< the scale after it
};

/// A scaler of the table over gradients that wander, with bursts and now and then a NaN.
std::vector<RunStep> random_run(const std::string& name, std::mt19937_64& random) {
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution(low, high)(random);
  };
  const auto scaler = make_scaler(name, {{"initial_scale", std::exp2(std::floor(uniform(8, 18)))},
                                         {"growth_interval", std::floor(uniform(5, 30))}});
  std::vector<RunStep> steps;
  const double middle = uniform(1, 5), nan_share = uniform(0, 0.02);
  for (int i = 0; i < 120; ++i) {
    RunStep step{scaler->scale(), uniform(0, 1) < nan_share ? HUGE_VAL : std::exp2(middle + uniform(-2, 2))};
    step.skipped = step.largest * step.scale >= limit;
    (void)scaler->update({.finite = !step.skipped, .max_abs = static_cast<float>(step.largest * step.scale)});
    step.next = scaler->scale();
    steps.push_back(step);
  }
  return steps;
}

enum class Print { deepspeed, megatron, both, bar };

/// The log of a run, with a line that counts every `every` steps, and without those in `hole`.
SkipLog printed_and_read(const std::vector<RunStep>& steps, Print print, std::int64_t every,
                         std::pair<std::int64_t, std::int64_t> hole) {
  SkipLogReader reader;
  std::int64_t skipped = 0, since = 0;
  for (std::int64_t i = 1; i <= std::ssize(steps); ++i) {
    const RunStep& step = steps[static_cast<std::size_t>(i - 1)];
    skipped += step.skipped ? 1 : 0;
    since += step.skipped ? 1 : 0;
    const bool is_hidden = i >= hole.first && i < hole.second;
    if (step.skipped && print != Print::megatron && !is_hidden)
      reader.line(fmt::format("OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {}, {}", step.scale,
                              step.next < step.scale ? fmt::format("reducing to {}", step.next)
                                                     : std::string("but hysteresis is 2.")));
    if (i % every != 0) continue;
    if (print == Print::deepspeed)
      reader.line(fmt::format("[Rank 0] step={}, skipped={}, lr=[1e-05]", i, skipped));
    if (print == Print::bar) reader.line(fmt::format(" 9%|#  | {}/{} [00:01<00:10, 2it/s]", i, steps.size()));
    if ((print == Print::megatron || print == Print::both) && !is_hidden)
      reader.line(fmt::format(
          " iteration {}/ 999 | loss scale: {:.1f} | grad norm: {:.3f} | number of skipped "
          "iterations: {} |",
          i, step.next, step.skipped ? 0 : 1.5 * step.largest, print == Print::megatron ? since : 0));
    since = 0;
  }
  return reader.finish();
}

std::vector<std::int64_t> overflows_at(const std::vector<RunStep>& steps, double scale) {
  std::vector<std::int64_t> overflows;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (steps[i].largest * scale >= limit) overflows.push_back(static_cast<std::int64_t>(i) + 1);
  return overflows;
}

const std::vector<std::string> constants{"1", "64", "1024", "8192", "65536"};

TEST_CASE("what a log of every step allows encloses the run, step by step", "[skip_log]") {
  std::mt19937_64 random(1);
  int runs = 0, reproduced = 0;
  for (int repeat = 0; repeat < 70; ++repeat) {
    for (const std::string name : {"dynamic", "megatron", "deepspeed", "apex_amp", "fairseq"}) {
      const std::vector<RunStep> steps = random_run(name, random);
      if (std::ranges::none_of(steps, &RunStep::skipped)) continue;
      for (const Print print : {Print::deepspeed, Print::megatron, Print::both, Print::bar}) {
        INFO(name << " " << static_cast<int>(print) << " " << repeat);
        const SkipLog log = printed_and_read(steps, print, 1, {});
        const RecordedRun run = recorded_run(log);
        std::vector<std::int64_t> skips;
        for (std::size_t i = 0; i < steps.size(); ++i)
          if (steps[i].skipped) skips.push_back(static_cast<std::int64_t>(i) + 1);
        REQUIRE(run.skips == skips);
        SkipLogReplay replay(constants, {});
        replay.take(log);
        for (std::size_t i = 0; i < constants.size(); ++i) {
          const auto truth = overflows_at(steps, std::stod(constants[i]));
          const auto& least = replay.least().candidates()[i].replay.overflows();
          const auto& greatest = replay.greatest().candidates()[i].replay.overflows();
          // The first line of Megatron-LM tells no scale before it.
          const bool knows_scales = log.unsure_scales == 0;
          if (knows_scales) REQUIRE(std::ranges::includes(truth, least));
          REQUIRE(std::ranges::includes(greatest, truth));
        }
        ++runs;
        if (print != Print::both) continue;
        std::vector<double> scales;
        for (const RunStep& step : steps) scales.push_back(step.scale);
        reproduced += run.scales == scales ? 1 : 0;
      }
    }
  }
  CHECK(runs >= 1000);
  CHECK(reproduced >= 200);
}

TEST_CASE("what a log with intervals and holes allows encloses how often a scale overflows", "[skip_log]") {
  std::mt19937_64 random(2);
  int runs = 0;
  for (int repeat = 0; repeat < 120; ++repeat) {
    for (const std::string name : {"dynamic", "megatron", "fairseq"}) {
      const std::vector<RunStep> steps = random_run(name, random);
      if (std::ranges::none_of(steps, &RunStep::skipped)) continue;
      for (const Print print : {Print::deepspeed, Print::both, Print::bar}) {
        const bool with_hole = print == Print::both && repeat % 2 == 0;
        const SkipLog log = printed_and_read(steps, print, repeat % 3 == 0 ? 10 : 5,
                                             with_hole ? std::pair<std::int64_t, std::int64_t>{41, 81}
                                                       : std::pair<std::int64_t, std::int64_t>{});
        INFO(name << " " << static_cast<int>(print) << " " << repeat);
        if (with_hole) REQUIRE(log.unknown_steps > 0);
        SkipLogReplay replay(constants, {});
        replay.take(log);
        for (std::size_t i = 0; i < constants.size(); ++i) {
          const auto truth = overflows_at(steps, std::stod(constants[i])).size();
          const bool knows_scales = log.unsure_scales == 0 && log.missing == 0;
          if (knows_scales) REQUIRE(replay.least().candidates()[i].replay.overflows().size() <= truth);
          REQUIRE(replay.greatest().candidates()[i].replay.overflows().size() >= truth);
        }
        ++runs;
      }
    }
  }
  CHECK(runs >= 300);
}

}  // namespace
}  // namespace halfscope::skip_log_random_test
