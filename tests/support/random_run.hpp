// Random runs of loss scalers over random gradients, and the logs that trainers would print of them.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/scaling/scalers.hpp>

namespace halfscope {

inline constexpr double fp16_overflow = 65520;

struct RunStep {
  double scale = 1;
  double largest = 0;    ///< max|g|, infinite where no scale helps
  bool skipped = false;  ///< the gradients overflow, and the scaler looks at them
  bool ends = false;     ///< the scaler ends the run: its scale cannot fall
  double next = 1;       ///< the scale after it

  [[nodiscard]] bool overflows_at(double other) const { return largest * other >= fp16_overflow; }
  [[nodiscard]] bool is_lost() const { return overflows_at(scale) && !skipped; }
};

/// A run that broke off after the steps of `attempt` and went on from a checkpoint after `resumed` steps.
struct RandomRun {
  const ScalerEntry* scaler = nullptr;
  ScalerSettings settings;
  std::vector<RunStep> steps{};    ///< steps that the weights have seen
  std::vector<RunStep> attempt{};  ///< from the first step on; empty without a restart
  std::size_t resumed = 0;

  [[nodiscard]] bool ended() const { return steps.back().ends; }
  [[nodiscard]] std::vector<std::int64_t> skips() const;
  /// The steps of [first, last] that overflow at a constant scale.
  [[nodiscard]] std::vector<std::int64_t> overflows_at(double scale, std::int64_t first,
                                                       std::int64_t last) const;
};

struct RunRequest {
  const ScalerEntry* scaler = nullptr;
  bool restarts = false;
  bool default_settings = false;  ///< but for the first scale
};
[[nodiscard]] RandomRun random_run(const RunRequest& request, std::mt19937_64& random);

/// Numbers that a log counts, and that a checkpoint restores.
struct LogCounters {
  std::int64_t step = 0, skipped = 0, since_line = 0, updates = 0;
};
/// A step that a printer prints.
struct PrintedStep {
  const RunStep& step;
  LogCounters counters;  ///< after it
  std::int64_t every = 1, total = 0;

  [[nodiscard]] bool has_line() const { return counters.step % every == 0; }
};
struct LogPrinter {
  std::string_view name;
  void (*print)(const PrintedStep& step, std::vector<std::string>& lines);
  bool tells_every_scale = false;  ///< not only of skipped steps
  bool counts = true;              ///< has a line that counts steps
  bool tells_end = true;           ///< prints why the scaler ended the run
  bool always_lowers = false;      ///< tells the scale of a skipped step only where it was lowered
  bool tells_lost = false;         ///< tells of steps that were not skipped and should have been
  bool every_process = false;      ///< prints the line of an overflow: at a floor they cannot be told apart
  bool scales_alone = false;       ///< tells the scale behind a step, and no skip
  bool counts_updates = false;     ///< not steps: a hole hides how many were skipped in it
};
[[nodiscard]] std::span<const LogPrinter> log_printers();
/// Printers of logs that no trainer is known for.
[[nodiscard]] std::span<const LogPrinter> named_log_printers();

/// Steps whose lines are cut out: [first, last).
struct LogHole {
  std::int64_t first = 0, last = 0;
};
[[nodiscard]] std::vector<std::string> printed(const RandomRun& run, const LogPrinter& printer,
                                               std::int64_t every, LogHole hole);

}  // namespace halfscope
