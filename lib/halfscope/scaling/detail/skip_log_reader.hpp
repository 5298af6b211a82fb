// Reader of logs that tell of loss scales, line by line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/scaling/detail/log_formats.hpp>
#include <halfscope/scaling/detail/log_lines.hpp>
#include <halfscope/scaling/skip_log.hpp>

namespace halfscope {

/// Why the overflows of some steps are not all that there were.
enum class LogGap : std::uint8_t {
  none,
  hole,     ///< some may be missing
  restart,  ///< some may belong to an attempt that broke off
  seam,     ///< none, but the scale before the line may be that of an attempt that broke off
};

/// DeepSpeed's steps up to a line that counts them.
struct CountedSteps {
  StepLine line;
  std::vector<OverflowLine> overflows;
  LogGap gap = LogGap::none;
};

/// Steps up to a line that tells the state after one, and the overflows that were printed since the line
/// before.
struct CountedIterations {
  IterationLine line;
  std::vector<OverflowLine> overflows;
  LogGap gap = LogGap::none;

  /// Steps that the line's own count leaves out: fairseq counts updates.
  [[nodiscard]] std::int64_t uncounted() const {
    return line.format == "fairseq" ? std::ssize(overflows) : 0;
  }
};

/// Overflows between progress bars, of which a log may have several: for downloads, for evaluations.
class ProgressLog {
 public:
  void add(const OverflowLine& line);
  void add(const ProgressBar& bar);

  [[nodiscard]] bool ends_with_overflow() const { return !events_.empty() && events_.back().bar.total == 0; }
  /// The count of the last bar, 0 where there was none.
  [[nodiscard]] std::int64_t last_done() const { return last_done_; }
  /// The total of the bar that moved most often; 0 where there was none.
  [[nodiscard]] std::int64_t longest_bar() const;
  /// The steps of the bar with this total, and the overflows after its last. Nothing where it starts again,
  /// as the bar of an epoch does, and where it never moved. A bar that falls back is a restart; one that
  /// moves four times as far as usual leaves a hole.
  [[nodiscard]] std::vector<CountedSteps> steps_of(std::int64_t total, std::vector<OverflowLine>& rest) const;

 private:
  /// A bar, or where it is empty an overflow.
  struct Event {
    ProgressBar bar;
    OverflowLine overflow;
  };
  std::vector<Event> events_;
  std::int64_t last_done_ = 0;
};

/// Reads a log line by line. Lines of overflow are put together with whatever counts steps: lines of state
/// (iterations), else DeepSpeed's counter, else the longest progress bar, else nothing. A count that falls
/// back is a restart from a checkpoint, which replaces the steps that it repeats.
class SkipLogReader {
 public:
  explicit SkipLogReader(const LogColumns& columns = {});

  /// The next line of the file, without its end.
  void line(std::string_view text);
  /// The last line, which has no end: it may have been cut, so that its numbers are none. Text that braces
  /// close is whole, and so is the text of an exception.
  void cut_line(std::string_view text);
  /// A whole event file of TensorBoard; its records count as lines.
  void event_file(std::string_view bytes, const LogColumns& columns);

  /// Throws InvalidArgument where no line told of a step, or not of both scales and steps; it names the
  /// format where it is a known one.
  [[nodiscard]] SkipLog finish() const;

 private:
  void add(const OverflowLine& line);
  void add(const StepLine& line);
  void add(const IterationLine& line);
  /// Whether a line tells nothing but what that of its step has told: another process, or a restart, repeats
  /// it.
  [[nodiscard]] bool repeats(const IterationLine& line) const;
  void add_once(const IterationLine& line);
  void merge_last(const IterationLine& line);
  void end_run(const EndingLine& line);
  void read(std::string_view text, LineEnd end);
  [[nodiscard]] SkipLog steps() const;
  void note_words(SkipLog& log) const;
  [[nodiscard]] bool is_newest_first() const { return falls_ > 2 && falls_ + 1 == states_; }
  /// Whether the lines of a step have other scales than each other, and those of the next step the same ones.
  [[nodiscard]] bool has_several_scales() const { return returns_ > 1 || (returns_ == 1 && differing_ <= 3); }
  void take_other_scale(const OtherScale& other);
  [[noreturn]] void refuse() const;
  [[nodiscard]] std::string why_nothing() const;

  std::vector<OverflowLine> since_count_, since_iteration_, all_;
  std::vector<CountedSteps> counted_;
  std::vector<CountedIterations> iterations_;
  std::vector<IterationLine>
      again_;                      ///< lines that repeat others, until one goes on behind the last or differs
  bool is_interleaved_ = false;    ///< processes that lag behind print the steps of others again
  std::int64_t other_scales_ = 0;  ///< lines with another scale than the one before of their step
  LogLines first_other_scale_{};
  std::optional<double> first_of_step_;  ///< the scale of the first line of the last step
  std::int64_t differing_ = 0;           ///< steps whose lines have different scales
  std::int64_t returns_ = 0;  ///< such steps behind which the scale is that of their first line again
  std::string only_scale_;    ///< the name of the scale that was read, where others were left out
  ProgressLog progress_;
  std::vector<LogLineReader> readers_;  ///< one for each format
  bool is_empty_ = true;
  std::int64_t number_ = 0, first_line_ = 0, last_line_ = 0;
  std::size_t bytes_ = 0;      ///< before this line
  std::int64_t repeated_ = 0;  ///< lines of overflow that other processes may have printed
  std::int64_t runs_ = 0;      ///< that began anew, and replaced the one before
  std::optional<std::int64_t> cut_line_, stopped_line_, minimum_line_;
  std::map<std::int64_t, std::int64_t> other_scalers_;  ///< skips of all but the first
  std::vector<std::string> notes_;
  std::vector<std::int64_t> mentions_;  ///< lines that may tell of a skip in words
  std::string other_scale_;             ///< a name that may be that of a loss scale
  std::int64_t other_scale_line_ = 0;
  bool is_other_unreadable_ = false;
  std::int64_t states_ = 0, falls_ = 0;  ///< lines of another step than the one before, and of one before it
  std::string rejected_;                 ///< the first line that was rejected, and why
  const LogFormat* known_ = nullptr;     ///< the first format whose sign was seen
};

/// Takes the scales from lines whose scale changes by different factors: a fall is then no skipped step.
void leave_uneven_scales(std::vector<CountedIterations>& iterations, SkipLog& log);

/// Takes finite norms from lines of steps where one beside a skipped step is finite too, as clipped ones are:
/// they bound nothing, and tell of no good step.
void leave_clipped_norms(std::vector<CountedIterations>& iterations);

/// Makes an overflow at its scale of each line that says that its step overflowed, by a flag or by its norm,
/// where that is the scale of the step; where no lines tell whether it is, or that behind the step, the scale
/// of a flag's line is left out.
void place_flags(std::vector<CountedIterations>& iterations);

/// Takes what later lines disprove from the lines of state, and finds the end of a log that no line
/// disproves.
void settle_losses(std::vector<CountedIterations>& iterations, SkipLog& log);

/// Skipped steps, at most, of PyTorch's scaler with its defaults: each takes a halving, and growths are at
/// least 2000 steps apart. Nothing where the scales contradict that rule.
[[nodiscard]] std::optional<std::int64_t> most_by_rule(const std::vector<CountedIterations>& iterations,
                                                       const SkipLog& log);

/// Lines that tell of skips in words, of which no scale or norm near them tells.
struct Mentions {
  std::vector<std::int64_t> lines;
  std::int64_t uncounted = 0;  ///< lines near no step that counts among the skipped ones at most already
};

/// Each step takes one of the lines near its own.
[[nodiscard]] Mentions mentions_beside(const std::vector<std::int64_t>& mentions,
                                       const std::vector<CountedIterations>& iterations, const SkipLog& log);

/// The steps of lines of state, see skip_log_iterations.cpp; `rest` follow the last line.
[[nodiscard]] SkipLog log_of_iterations(std::vector<CountedIterations> iterations,
                                        const std::vector<OverflowLine>& rest);
/// The steps that lines count, and the overflows after the last of them.
[[nodiscard]] SkipLog log_of_counts(const std::vector<CountedSteps>& counted,
                                    const std::vector<OverflowLine>& rest);

}  // namespace halfscope
