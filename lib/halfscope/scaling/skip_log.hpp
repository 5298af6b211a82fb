// Steps that DeepSpeed's and Megatron-LM's logs tell of: which were skipped, and at which loss scale.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <halfscope/core/names.hpp>
#include <halfscope/scaling/skip_log_lines.hpp>

namespace halfscope {

enum class SkipLogFormat : std::uint8_t { deepspeed, megatron };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<SkipLogFormat>{"deepspeed", "megatron"};

/// A step of the optimizer. One that was not skipped is finite at `scale`, and may have been at a larger one.
struct LoggedStep {
  std::int64_t step = 0;
  double scale = 1;
  bool skipped = false;
  std::optional<double> grad_norm{};  ///< of the unscaled gradients: none of them is larger
};

/// A log's steps, ascending. Those between two of them were not skipped, and have the scale of the last one
/// before them that was not.
struct SkipLog {
  SkipLogFormat format = SkipLogFormat::deepspeed;
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

  /// From the first step to the last, those between that have no line included.
  [[nodiscard]] std::int64_t step_count() const { return steps.back().step - steps.front().step + 1; }
};

/// DeepSpeed's steps up to a line that counts them.
struct CountedSteps {
  StepLine line;
  std::vector<OverflowLine> overflows;
};

/// Overflows between progress bars, of which a log may have several: for downloads, for evaluations.
class ProgressLog {
 public:
  void add(const OverflowLine& line);
  void add(const ProgressBar& bar);

  [[nodiscard]] bool ends_with_overflow() const { return !events_.empty() && events_.back().bar.total == 0; }
  /// The total of the bar that moved most often; 0 where there was none.
  [[nodiscard]] std::int64_t longest_bar() const;
  /// The steps of the bar with this total, and the overflows after its last. Throws InvalidArgument where it
  /// starts again, as the bar of an epoch does.
  [[nodiscard]] std::vector<CountedSteps> steps_of(std::int64_t total, std::vector<OverflowLine>& rest) const;

 private:
  /// A bar, or where it is empty an overflow.
  struct Event {
    ProgressBar bar;
    OverflowLine overflow;
  };
  std::vector<Event> events_;
};

/// Reads a log line by line. Iterations win over DeepSpeed's lines where a log has both. A count that falls
/// back is a restart from a checkpoint, which replaces the steps that it repeats. Where no line counts
/// DeepSpeed's steps, the log's longest progress bar does.
class SkipLogReader {
 public:
  void line(std::string_view text);

  /// Throws InvalidArgument where no line told of a step, or not of both scales and steps.
  [[nodiscard]] SkipLog finish() const;

 private:
  void add(const OverflowLine& line);
  void add(const StepLine& line);
  void add(const IterationLine& line);
  [[nodiscard]] SkipLog megatron_log() const;

  std::vector<OverflowLine> overflows_;  ///< since the last line that counts
  std::vector<CountedSteps> counted_;
  std::vector<IterationLine> iterations_;
  ProgressLog progress_;
};

}  // namespace halfscope
