// Random runs of scalers, printed as the logs of trainers and read again: what the log allows encloses the
// run.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <utility>

#include <halfscope/scaling/detail/skip_log_reader.hpp>
#include <halfscope/scaling/scalers.hpp>
#include <halfscope/scaling/skip_log_replay.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/random_run.hpp"

namespace halfscope::skip_log_random_test {
namespace {

using Steps = std::vector<std::int64_t>;

/// Scalers that judge by finiteness alone, as the trainers' own do.
std::vector<const ScalerEntry*> scalers_of_logs() {
  std::vector<const ScalerEntry*> scalers;
  for (const ScalerEntry& scaler : scaler_table) {
    const auto made = make_scaler(scaler, {});
    if (!made->layerwise() && made->needs() <= GradientDetail::finite) scalers.push_back(&scaler);
  }
  return scalers;
}

/// Runs of each test; HALFSCOPE_RANDOM_LOGS, where set, is how many.
int wanted_runs(int usual) {
  const char* const value = std::getenv("HALFSCOPE_RANDOM_LOGS");
  return value == nullptr ? usual : std::atoi(value);
}

struct Printed {
  const RandomRun& run;
  const LogPrinter& printer;
  std::int64_t every = 1;
  LogHole hole{};

  /// Whether steps were cut out that no line counts.
  [[nodiscard]] bool hides_steps() const { return printer.counts_updates && hole.last > 0; }
  /// Whether the second attempt has a line: without one the log is that of the first. A count of updates
  /// falls back where both have printed updates after the checkpoint.
  [[nodiscard]] bool shows_restart() const {
    if (run.attempt.empty()) return true;
    RandomRun first = run;
    first.steps = std::exchange(first.attempt, {});
    first.resumed = 0;
    if (lines().size() == printed(first, printer, every, hole).size()) return false;
    const auto updates_after = [&](const std::vector<RunStep>& steps) {
      return std::ranges::count(std::span(steps).subspan(run.resumed), false, &RunStep::skipped);
    };
    return !printer.counts_updates ||
           (updates_after(run.attempt) >= 2 * every && updates_after(run.steps) >= 2 * every);
  }
  /// Whether the second attempt goes on at the scale that the first left, and ends before a line that counts
  /// steps: a run that was never restarted prints the same.
  [[nodiscard]] bool is_of_unbroken_run() const {
    if (run.attempt.empty()) return false;
    double scale = run.attempt.back().next;
    for (std::size_t i = run.resumed; i < run.steps.size(); ++i) {
      const RunStep& step = run.steps[i];
      const bool is_counted = static_cast<std::int64_t>(i + 1) % every == 0 && !step.ends;
      if (is_counted || step.scale != scale) return false;
      scale = step.next;
    }
    return true;
  }
  [[nodiscard]] std::vector<std::string> lines() const { return printed(run, printer, every, hole); }
};

/// Nothing where the log has no line that is read.
std::optional<SkipLog> read(const Printed& log) {
  SkipLogReader reader;
  for (const std::string& line : log.lines()) reader.line(line);
  try {
    return reader.finish();
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

const std::vector<std::string> constants{"1", "64", "1024", "8192", "65536", "16777216"};

/// Overflows of the run at a constant scale, and the two bounds that the log puts to them.
struct Bounds {
  Steps least, whole_run, up_to_last_line, greatest;
};
std::vector<Bounds> bounds_of(const Printed& printed, const SkipLog& log) {
  const RandomRun& run = printed.run;
  SkipLogReplay replay(constants, {});
  replay.take(log);
  const std::int64_t first = log.steps.front().step, all = std::ssize(run.steps),
                     last = std::min(log.steps.back().step, all);
  std::vector<Bounds> bounds;
  for (std::size_t i = 0; i < constants.size(); ++i)
    bounds.push_back({replay.least().candidates()[i].replay.overflows(),
                      run.overflows_at(std::stod(constants[i]), 1, all),
                      run.overflows_at(std::stod(constants[i]), first, last),
                      replay.greatest().candidates()[i].replay.overflows()});
  return bounds;
}

void check_each_step(const Printed& printed, const SkipLog& log) {
  for (const Bounds& bounds : bounds_of(printed, log)) {
    REQUIRE(std::ranges::includes(bounds.whole_run, bounds.least));
    REQUIRE(std::ranges::includes(bounds.greatest, bounds.up_to_last_line));
  }
}

/// Lines of several steps leave their places open, not their number.
void check_counts(const Printed& printed, const SkipLog& log) {
  for (const Bounds& bounds : bounds_of(printed, log)) {
    REQUIRE(bounds.least.size() <= bounds.whole_run.size());
    if (!printed.hides_steps()) REQUIRE(bounds.greatest.size() >= bounds.up_to_last_line.size());
  }
}

/// The skipped steps of a log that tells no others; a line that every process prints counts once.
void check_skips_alone(const RandomRun& run, const SkipLog& log) {
  std::vector<double> scales, recorded;
  for (const RunStep& step : run.steps)
    if (step.skipped) scales.push_back(step.scale);
  for (const LoggedStep& step : log.steps) recorded.push_back(step.scale);
  for (std::vector<double>* list : {&scales, &recorded})
    list->erase(std::unique(list->begin(), list->end()), list->end());
  REQUIRE(recorded == scales);
}

/// The run's own scaler does what the run did, up to the step at which the log leaves it open.
void check_own_scaler(const RandomRun& run, const SkipLog& log) {
  ScalerSettings settings = run.settings;
  SkipLogReplay replay({std::string(run.scaler->name)}, settings);
  replay.take(log);
  const std::int64_t sure = replay.first_unsure(0).value_or(std::ssize(run.steps) + 1);
  const auto before = [&](Steps steps) {
    std::erase_if(steps, [&](std::int64_t step) { return step >= sure; });
    return steps;
  };
  Steps truth;
  for (std::int64_t i = 1; i <= std::ssize(run.steps); ++i) {
    const RunStep& step = run.steps[static_cast<std::size_t>(i - 1)];
    if (i <= log.steps.back().step && step.overflows_at(step.scale)) truth.push_back(i);
  }
  for (const TraceReplay* bound : {&replay.least(), &replay.greatest()})
    REQUIRE(before(bound->candidates()[0].replay.overflows()) == before(truth));
}

void check_recorded(const Printed& printed, const SkipLog& log) {
  const RecordedRun recorded = recorded_run(log);
  Steps skips = printed.run.skips();
  const bool last_is_cut = printed.run.ended() && !printed.printer.tells_end;
  if (last_is_cut && !skips.empty() && skips.back() > log.steps.back().step) skips.pop_back();
  REQUIRE(recorded.skips == skips);
  if (!printed.printer.tells_every_scale) return;
  for (std::size_t i = 1; i < recorded.scales.size(); ++i)  // no line tells the first
    if (printed.run.steps[i].scale >= 0.5)                  // smaller ones are rounded
      REQUIRE(recorded.scales[i] == printed.run.steps[i].scale);
}

/// Skipped steps up to the log's last line.
std::int64_t true_skips(const RandomRun& run, const SkipLog& log) {
  std::int64_t count = 0;
  for (const std::int64_t step : run.skips()) count += step <= log.steps.back().step ? 1 : 0;
  return count;
}

/// Whether the least and the most enclose the number of skipped steps.
void check_bounds(const Printed& printed, const SkipLog& log) {
  const RandomRun& run = printed.run;
  const std::int64_t truth = true_skips(run, log);
  // Overflows behind the last line that counts steps have no place.
  REQUIRE(log.least_skipped() <= std::ssize(run.skips()));
  if (log.most_skipped() && !printed.hides_steps()) REQUIRE(truth <= *log.most_skipped());
  const auto& options = run.settings;
  const bool by_rule = run.scaler->name == "dynamic" && options.contains("growth_interval") &&
                       options.at("growth_interval") >= 2000 && options.at("initial_scale") == 65536;
  if (by_rule && log.most_by_rule) REQUIRE(truth <= *log.most_by_rule);
}

bool has_lost(const RandomRun& run) {
  return std::ranges::any_of(run.steps, &RunStep::is_lost) ||
         std::ranges::any_of(run.attempt, &RunStep::is_lost);
}

/// Whether every overflow lowers the scale.
bool always_lowers(const RandomRun& run) {
  return std::ranges::none_of(run.steps,
                              [](const RunStep& step) { return step.skipped && step.next == step.scale; });
}

/// Whether a skip does not show in the scale, which is at its floor of 1 or below what is printed.
bool has_floor(const RandomRun& run) {
  return std::ranges::any_of(run.steps, [](const RunStep& step) { return step.skipped && step.next < 1; });
}

/// Calls `check(run, printer)` for `count` runs of all scalers, in all formats.
template <typename Check>
void for_runs(int count, bool restarts, std::mt19937_64& random, Check&& check) {
  const auto scalers = scalers_of_logs();
  std::vector<LogPrinter> printers(log_printers().begin(), log_printers().end());
  printers.insert(printers.end(), named_log_printers().begin(), named_log_printers().end());
  for (int i = 0; i < count; ++i) {
    const RandomRun run = random_run(
        {.scaler = scalers[static_cast<std::size_t>(i) % scalers.size()], .restarts = restarts}, random);
    for (const LogPrinter& printer : printers) {
      if (has_lost(run) && !printer.tells_lost) continue;
      if ((printer.every_process || printer.scales_alone) && !always_lowers(run)) continue;
      INFO("run " << i << " of " << run.scaler->name << " as " << printer.name);
      check(run, printer);
    }
  }
}

TEST_CASE("the least and the most skipped steps enclose the run's, whatever the lines tell",
          "[skip_log][random_logs]") {
  std::mt19937_64 random(6);
  int checked = 0;
  for_runs(wanted_runs(300), false, random, [&](const RandomRun& run, const LogPrinter& printer) {
    for (const std::int64_t every : {1, 5, 50}) {
      if (!printer.counts || (every == 1 && printer.scales_alone && has_floor(run))) continue;
      const Printed log{run, printer, every};
      if (const auto found = read(log)) {
        INFO(every);
        check_bounds(log, *found);
        ++checked;
      }
    }
  });
  CHECK(checked >= 300);
}

TEST_CASE("a log that was killed at any byte tells no more than its whole lines", "[skip_log][random_logs]") {
  std::mt19937_64 random(7);
  int checked = 0;
  for_runs(wanted_runs(300), true, random, [&](const RandomRun& run, const LogPrinter& printer) {
    constexpr std::array<std::int64_t, 3> intervals{1, 5, 50};
    const std::vector<std::string> lines = Printed{run, printer, intervals[random() % 3]}.lines();
    if (lines.empty()) return;
    const std::size_t whole = random() % lines.size();
    SkipLogReader cut, short_log;
    for (std::size_t i = 0; i < whole; ++i) {
      cut.line(lines[i]);
      short_log.line(lines[i]);
    }
    const std::string_view last = lines[whole];
    cut.cut_line(last.substr(0, random() % (last.size() + 1)));
    INFO(last);
    const auto text = [](const SkipLogReader& reader) {
      try {
        return verdict_of(reader.finish());
      } catch (const InvalidArgument& error) {
        return std::string("refused");
      }
    };
    const std::string said = text(cut), before = text(short_log);
    ++checked;
    if (said == before) return;
    short_log.line(last);
    REQUIRE(said == text(short_log));
  });
  CHECK(checked >= 300);
}

TEST_CASE("a log with a line for every step encloses the run, step by step", "[skip_log][random_logs]") {
  std::mt19937_64 random(1);
  int checked = 0;
  for_runs(wanted_runs(1000), false, random, [&](const RandomRun& run, const LogPrinter& printer) {
    if (printer.scales_alone) return;
    const Printed log{run, printer};
    const auto found = read(log);
    if (!found) return;
    ++checked;
    if (!printer.counts) {
      if (!printer.always_lowers || always_lowers(run)) check_skips_alone(run, *found);
      return;
    }
    check_each_step(log, *found);
    check_own_scaler(run, *found);
    check_recorded(log, *found);
  });
  CHECK(checked >= wanted_runs(1000));
}

TEST_CASE("a log with a line for several steps encloses how many overflow", "[skip_log][random_logs]") {
  std::mt19937_64 random(2);
  for_runs(wanted_runs(300), false, random, [&](const RandomRun& run, const LogPrinter& printer) {
    const Printed log{run, printer, random() % 2 == 0 ? 5 : 10};
    if (const auto found = read(log); found && printer.counts) check_counts(log, *found);
  });
}

TEST_CASE("a log with a hole encloses how many steps overflow", "[skip_log][random_logs]") {
  std::mt19937_64 random(3);
  for_runs(wanted_runs(300), false, random, [&](const RandomRun& run, const LogPrinter& printer) {
    const auto first = static_cast<std::int64_t>(20 + random() % 40);
    const auto length = static_cast<std::int64_t>(30 + random() % 20);
    const Printed log{run, printer, random() % 2 == 0 ? 1 : 5, {first, first + length}};
    if (const auto found = read(log); found && printer.counts) {
      check_counts(log, *found);
      check_bounds(log, *found);
    }
  });
}

TEST_CASE("a log of a run that was restarted encloses what the weights have seen",
          "[skip_log][random_logs]") {
  std::mt19937_64 random(4);
  for_runs(wanted_runs(300), true, random, [&](const RandomRun& run, const LogPrinter& printer) {
    const Printed log{run, printer, random() % 2 == 0 ? 1 : 5};
    if (!log.shows_restart() || log.is_of_unbroken_run()) return;
    if (const auto found = read(log); found && printer.counts) {
      check_counts(log, *found);
      check_bounds(log, *found);
    }
  });
}

TEST_CASE("a restart that was killed before its first line leaves bounds that enclose the run",
          "[skip_log][random_logs]") {
  std::mt19937_64 random(8);
  int seen = 0;
  for_runs(wanted_runs(300), true, random, [&](const RandomRun& whole, const LogPrinter& printer) {
    if (whole.attempt.empty() || !printer.counts || printer.counts_updates) return;
    constexpr std::int64_t every = 5;
    RandomRun run = whole;
    run.steps.resize(std::min(run.steps.size(), run.resumed + 1 + random() % (every - 1)));
    const Printed log{run, printer, every};
    const auto found = read(log);
    // A scale without a jump is that of a run that went on.
    if (!log.shows_restart() || !found || !found->restart) return;
    ++seen;
    REQUIRE(found->least_skipped() <= std::ssize(run.skips()));
    REQUIRE(*found->most_skipped() >= std::ssize(run.skips()));
  });
  CHECK(seen >= 20);
}

TEST_CASE("a scaler with its usual settings reproduces the log that it wrote", "[skip_log][random_logs]") {
  std::mt19937_64 random(5);
  int reproduced = 0;
  for (const ScalerEntry* const scaler : scalers_of_logs()) {
    for (int i = 0; i < wanted_runs(20); ++i) {
      const RandomRun run = random_run({.scaler = scaler, .default_settings = true}, random);
      if (run.skips().empty() || run.steps.front().skipped || run.ended()) continue;
      const auto log = read({run, log_printers()[4]});
      REQUIRE(log);
      const RecordedRun recorded = recorded_run(*log);
      INFO(scaler->name << " " << i);
      CHECK(std::ranges::count(recorded.reproduced_by, scaler->name) == 1);
      ++reproduced;
    }
  }
  CHECK(reproduced >= 20);
}

}  // namespace
}  // namespace halfscope::skip_log_random_test
