// Steps that the logs of trainings tell of: which were skipped, at which loss scale, and what is not known.
#pragma once

#include <algorithm>
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
  std::int64_t line = 0;              ///< number of the line that tells of it
};

/// Names in a log, of those whose usual names are others; empty where they are the usual ones.
struct LogColumns {
  std::string step, scale, norm, loss;
  bool scale_is_log2 = false;

  [[nodiscard]] bool is_given() const {
    return !(step.empty() && scale.empty() && norm.empty() && loss.empty());
  }
};

/// "step=iter,loss_scale=lg_scale:log2": what stands for step, loss_scale, grad_norm and loss. Throws
/// InvalidArgument.
[[nodiscard]] LogColumns parse_log_columns(std::string_view text);

/// Lines of the file, from the first to the last.
struct LogLines {
  std::int64_t first = 0, last = 0;
};

/// The end of a log whose losses or gradients are not finite, and no later line is.
struct LostWeights {
  std::int64_t earliest = 0, latest = 0;  ///< the first lost step is one of these
  LogLines lines;
  bool is_counted = false;   ///< a counter says that the steps were not skipped
  bool by_loss = false;      ///< no norm tells of it
  bool is_filtered = false;  ///< by losses of 0 that the Trainer prints for those that are not finite
  /// The first lost step, if losses stayed what they were: the last line's is smaller by its share.
  std::optional<std::int64_t> by_share{};
};

/// Lines whose norm or loss is not finite, while that of a later line is: the weights live.
struct DisprovedLosses {
  std::int64_t count = 0;
  LogLines lines;
  std::int64_t disproof = 0;  ///< the later line
  bool by_loss = false;       ///< its loss is finite, and no norm of its
  bool has_means = false;     ///< the lines are means over several steps
};

/// A restart that may lie behind the last line that counts steps: the scale jumps there, by more than it
/// grows in the steps that there are. No line tells which step it went on from, so that it may have taken
/// every step before it again.
struct PossibleRestart {
  std::int64_t line = 0;         ///< the first overflow behind it
  double before = 1, after = 1;  ///< the scale that the log tells before it, and that of the overflow
  std::int64_t skipped = 0;      ///< steps behind it
};

/// Scales that are no scaler's own, or may be none.
struct UnevenScales {
  enum class Kind : std::uint8_t {
    different_factors,  ///< as of a mean, and of a scaler that follows the gradients
    one_factor,         ///< that a mean over a window has as well as a scaler
    quick_rises,        ///< within two steps of another change
  };
  Kind kind = Kind::different_factors;
  LogLines lines;              ///< two of the changes
  double first = 1, last = 1;  ///< their factors
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
  /// False where no line tells of a loss scaler: the scale is 1 throughout, or there is none. A scaler at its
  /// smallest scale prints the same.
  bool has_scaler = true;
  /// The overflow at the smallest scale that ended the run.
  std::optional<std::int64_t> ended{};
  /// The line of an exception that ended the run: a loss or a gradient was not finite.
  std::optional<std::int64_t> stopped_line{};
  /// The line of an exception that ended the run at the smallest scale, where no line of overflow stands
  /// before it.
  std::optional<std::int64_t> minimum_line{};
  /// Steps of which no line tells whether they were skipped: a line stands for several, and none counts
  /// skips.
  std::int64_t open_steps = 0;
  /// Skipped steps, at most, of PyTorch's scaler with its defaults: it halves the scale at each, and doubles
  /// it after 2000 good ones. None where skips are counted, or where the log contradicts that rule.
  std::optional<std::int64_t> most_by_rule{};
  /// Steps that may have been skipped, since no line tells the scale before them, nor counts skips: the first
  /// of a log, and one behind a hole.
  std::int64_t unseen_steps = 0;
  /// The first line behind a restart whose scale is another than before it, by more than skips explain.
  std::optional<std::int64_t> seam_line{};
  /// Lines of overflow that repeat the one before, as other processes print them: skipped steps, at most.
  std::int64_t repeated = 0;
  /// Lines whose norm or loss is not finite behind one that is not: skipped steps, unless it is a mean.
  std::int64_t again = 0;
  /// The first step from which on no loss or norm is finite, though the scaler went on skipping; the log ends
  /// so.
  std::optional<std::int64_t> bad_from{};
  std::optional<double> bad_at{};  ///< the scale of its last step, if the line tells it
  /// Lines that may tell of a skipped step in words, and are not read: no scale or norm near them tells of
  /// it.
  std::int64_t told_in_words = 0;
  /// Lines of words near no step that may have been skipped anyhow: skipped steps, at most.
  std::int64_t added_by_words = 0;
  /// Whether a line counts skips, or tells of each.
  bool counts_skips = true;
  /// False where steps are numbered by the lines that tell of them, since none has a number.
  bool numbers_steps = true;
  std::optional<LostWeights> lost{};
  std::optional<DisprovedLosses> disproved{};
  std::optional<PossibleRestart> restart{};
  /// The first line with a scale that is infinite, NaN, 0 or negative, and that scale.
  std::optional<std::int64_t> bad_scale_line{};
  double bad_scale = 0;
  std::optional<UnevenScales> uneven{};
  /// The name of the scale that was read, where lines have others beside it.
  std::string only_scale{};
  /// A name that may be that of a loss scale, and is not read as one; and its first line.
  std::string other_scale{};
  std::int64_t other_scale_line = 0;
  bool is_other_unreadable = false;  ///< it is a known name, behind which no number stands
  /// The last line has no end: it was left out.
  std::optional<std::int64_t> cut_line{};
  /// Steps of the longest window that a line stands for.
  std::int64_t interval = 1;
  /// The lines that were read.
  LogLines lines{};
  /// Names that were read, and what was left out: a sentence each.
  std::vector<std::string> notes{};

  /// Skipped steps, at least.
  [[nodiscard]] std::int64_t least_skipped() const {
    return restart ? restart->skipped : skipped + missing + skipped_in_holes;
  }
  /// Skipped steps, at most; none where steps are not counted or numbered, or where no line tells of a
  /// scaler.
  [[nodiscard]] std::optional<std::int64_t> most_skipped() const {
    if (!counts_steps || !numbers_steps || !(has_scaler || disproved)) return std::nullopt;
    const std::int64_t read =
        skipped + missing + hidden_skips + open_steps + unknown_steps + repeated + again + unseen_steps;
    return std::max(read, std::min(read + added_by_words, steps.empty() ? 0 : steps.back().step));
  }

  /// From the first step to the last, those between that have no line included.
  [[nodiscard]] std::int64_t step_count() const { return steps.back().step - steps.front().step + 1; }
  /// The first step that is known to be lost.
  [[nodiscard]] std::optional<std::int64_t> lost_from() const;
  /// Whether a restart may have taken the step again.
  [[nodiscard]] bool may_be_repeated(const LoggedStep& step) const {
    return restart && step.line < restart->line;
  }
};

/// "A log of DeepSpeed": what printed it.
[[nodiscard]] std::string_view title_of(const SkipLog& log);

/// Meaning of the log's run, in a sentence or two: skips of the start-up, such as a smaller largest scale
/// would spare, such as no scale cures, lost weights, no scaler.
[[nodiscard]] std::string verdict_of(const SkipLog& log);

}  // namespace halfscope
