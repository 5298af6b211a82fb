// Reader of DeepSpeed's and Megatron-LM's logs, line by line.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <halfscope/scaling/detail/skip_log_lines.hpp>
#include <halfscope/scaling/skip_log.hpp>

namespace halfscope {

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
