// Steps that the logs of trainings tell of: which were skipped, at which loss scale, and what is not known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace halfscope {

/// A step of the optimizer. One that was neither skipped nor lost is finite at `low`; one that was is not
/// finite at `high`.
struct LoggedStep {
  std::int64_t step = 0;
  double scale = 1;
  bool skipped = false;
  std::optional<double> grad_norm{};  ///< norm of the unscaled gradients: none of them is larger
  bool lost = false;                  ///< not finite, and not skipped: the weights are lost
  bool after_hole = false;            ///< nothing is known of the steps between the one before and this
  double low = scale, high = scale;   ///< bounds of its scale, which some logs do not tell; low 0: none
  std::int64_t hidden = 0;            ///< see SkipLog::hidden_skips
};

/// A log's steps, ascending. Steps between two of them without a hole were not skipped, and have the scale of
/// the last one before them that was not.
struct SkipLog {
  std::string_view format = "deepspeed";  ///< its name
  std::vector<LoggedStep> steps;
  std::int64_t skipped = 0;
  /// Skipped steps of which the log does not tell which of several steps it was: taken as the first of them.
  std::int64_t unsure_steps = 0;
  /// Skipped steps whose scale was inferred from the scales of the lines around them.
  std::int64_t unsure_scales = 0;
  /// Skipped steps that the log counts and has no line for; they are not among the steps.
  std::int64_t missing = 0;
  /// Where a progress bar counts DeepSpeed's steps, since no line does: its total. Else 0.
  std::int64_t bar_total = 0;
  /// Steps in holes between lines, and those whose overflows may belong to an attempt that broke off: nothing
  /// is known of them.
  std::int64_t unknown_steps = 0;
  /// Skipped steps in holes, at least: the scale has fallen there.
  std::int64_t skipped_in_holes = 0;
  /// Skipped steps that the log's own counter leaves out: lines of overflow, or a falling scale, tell of
  /// them.
  std::int64_t uncounted = 0;
  /// Skipped steps that no line counts, at most: the scale has fallen by so many halvings more than there are
  /// steps for. A scaler that lowers it by more than half at once has none of them.
  std::int64_t hidden_skips = 0;
  /// The scale that the last step leaves, where a line tells it.
  std::optional<double> next_scale{};
  /// False where no line counts steps: only the skipped ones are there, numbered one by one.
  bool counts_steps = true;
  /// False where nothing scales the loss: the scale is 1 throughout, or there is none, and nothing is
  /// skipped.
  bool has_scaler = true;
  /// The overflow at the smallest scale that ended the run.
  std::optional<std::int64_t> ended{};

  /// From the first step to the last, those between that have no line included.
  [[nodiscard]] std::int64_t step_count() const { return steps.back().step - steps.front().step + 1; }
  /// The first step that is known to be lost.
  [[nodiscard]] std::optional<std::int64_t> lost_from() const;
};

/// "A log of DeepSpeed": what printed it.
[[nodiscard]] std::string_view title_of(const SkipLog& log);

/// Meaning of the log's run, in a sentence or two: skips of the start-up, such as a smaller largest scale
/// would spare, such as no scale cures, lost weights, no scaler.
[[nodiscard]] std::string verdict_of(const SkipLog& log);

}  // namespace halfscope
