// Windows of steps that one line of a log counts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <halfscope/scaling/detail/log_lines.hpp>
#include <halfscope/scaling/skip_log.hpp>

namespace halfscope {

/// Some steps that one line of a log counts: those after `first` up to `last`.
struct LogWindow {
  std::int64_t first = 0, last = 0;
  bool after_hole = false;  ///< nothing is known of the steps before it
  std::int64_t line = 0;    ///< number in the file

  [[nodiscard]] std::int64_t size() const { return last - first; }
};

/// Where the first of several windows begins: they are taken to be equally long.
[[nodiscard]] inline std::int64_t first_begins(std::int64_t first, std::int64_t second) {
  return std::max<std::int64_t>(0, first - (second - first));
}

/// A skipped step, at a scale that is bounded by `high`.
struct SkippedAt {
  double scale = 1;
  double high = scale;
  std::int64_t hidden = 0;  ///< see LoggedStep
  std::int64_t line = 0;    ///< number in the file; 0: its window's
};

/// Overflows that a fall of the scale takes: each halves it at most. Scales may be rounded where they are
/// printed.
[[nodiscard]] std::int64_t halvings_between(double before, double after);

/// `count` skips at a scale that falls by halves, from `before` to `after`: hysteresis forgives the first
/// ones. All are at `before` where it did not fall by halves. None was at more than the scale from which the
/// skips from it on can lower to `after`.
[[nodiscard]] std::vector<SkippedAt> falling_scales(double before, double after, std::int64_t count);

/// Adds a window's steps: first those that were skipped, then those that were not, as `finite` says of the
/// last. Before a lost one any may be lost. Throws InvalidArgument for more than a million skipped ones.
void add_window(const LogWindow& window, const std::vector<SkippedAt>& skipped, const LoggedStep& finite,
                SkipLog& log);

/// The last line that counts steps.
struct LastCount {
  double scale = 0;           ///< behind it; 0: unknown
  std::int64_t interval = 1;  ///< steps from one such line to the next
};

/// The last restart that may lie between overflows that follow `last`, the end of `log`.
[[nodiscard]] std::optional<PossibleRestart> possible_restart(const SkipLog& log, const LastCount& last,
                                                              const std::vector<OverflowLine>& rest);

}  // namespace halfscope
