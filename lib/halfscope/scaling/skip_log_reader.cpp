// Collects the lines of a log, and chooses what counts its steps.
#include <halfscope/scaling/detail/skip_log_reader.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <halfscope/core/error.hpp>
#include <halfscope/core/escape.hpp>
#include <halfscope/scaling/detail/log_fields.hpp>
#include <halfscope/scaling/detail/log_text.hpp>

namespace halfscope {
namespace {

/// The overflows alone, numbered one by one.
SkipLog log_without_counts(const std::vector<OverflowLine>& overflows) {
  SkipLog log;
  log.format = overflows.front().format;
  for (const OverflowLine& overflow : overflows)
    log.steps.push_back(
        {.step = std::ssize(log.steps) + 1, .scale = overflow.scale, .skipped = true, .line = overflow.line});
  log.skipped = log.unsure_steps = std::ssize(log.steps);
  log.counts_steps = false;
  if (overflows.back().ends)
    log.ended = log.steps.back().step;
  else
    log.next_scale = scale_after(overflows);
  return log;
}

/// Whether a line tells more than finite losses.
bool tells_something(const CountedIterations& counted) {
  const IterationLine& line = counted.line;
  const bool has_loss = line.loss && (std::isnan(*line.loss) || (line.is_filtered && *line.loss == 0));
  return line.scale || line.bad_scale || line.grad_norm || line.skipped || line.overflowed ||
         line.has_scaler || line.has_finite_norm || line.not_finite > 0 || has_loss ||
         line.format == "fairseq";
}

/// Refuses a file whose beginning has bytes of 0, as tools that search text do: strings of a program may look
/// like lines of a log.
void require_text(std::string_view line, std::int64_t number) {
  if (line.find('\0') == std::string_view::npos) return;
  throw InvalidArgument(
      fmt::format("line {} has bytes of 0: a binary file, UTF-16 (iconv -f utf-16 -t utf-8), or a log with a "
                  "hole (tr -d '\\000')",
                  number));
}

/// A restart may have replaced the steps that overflowed.
void require_overflow(const std::vector<CountedSteps>& counted, const std::vector<OverflowLine>& rest) {
  const bool tells_scale = !rest.empty() || std::ranges::any_of(counted, [](const CountedSteps& steps) {
    return !steps.overflows.empty();
  });
  if (!tells_scale) {
    throw InvalidArgument(
        "lines that count steps, but none of a skipped step: only those tell DeepSpeed's loss scale");
  }
}

}  // namespace

LogLineReader read_nothing(const LogColumns& /*columns*/) {
  return [](const LogText& /*line*/, const SkipLogSink& /*sink*/) { return false; };
}

SkipLogReader::SkipLogReader(const LogColumns& columns) {
  for (const LogFormat& format : log_formats) readers_.push_back(format.reader(columns));
}

void SkipLogReader::line(std::string_view text) {
  ++number_;
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (number_ == 1 && text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  constexpr std::size_t beginning = 8192;  // bytes
  if (bytes_ < beginning) require_text(text, number_);
  bytes_ += text.size();
  is_empty_ = is_empty_ && text.find_first_not_of(" \t\r") == std::string_view::npos;
  for (const LogFormat& format : log_formats) {
    if (!known_ && !format.sign.empty() && text.find(format.sign) != std::string_view::npos) known_ = &format;
  }
  while (!text.empty()) {  // progress bars join lines
    const std::size_t end = std::min(text.find('\r'), text.size());
    read(text.substr(0, end), LineEnd::whole);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void SkipLogReader::cut_line(std::string_view text) {
  const std::size_t whole = text.rfind('\r') == std::string_view::npos ? 0 : text.rfind('\r');
  const std::string_view rest = text.substr(whole);
  const std::size_t last = rest.find_last_not_of(" \t\r");
  const bool is_array = rest.substr(std::min(rest.find_first_not_of(" \t\r"), rest.size())).starts_with("[{");
  if (last != std::string_view::npos && (rest[last] == '}' || (is_array && rest[last] == ']')))
    return line(text);
  line(text.substr(0, whole));
  if (last == std::string_view::npos) return;
  is_empty_ = false;
  cut_line_ = number_;
  read(rest, LineEnd::cut);
}

void SkipLogReader::read(std::string_view text, LineEnd end) {
  std::string plain;
  if (text.find('\x1b') != std::string_view::npos) text = plain = without_colours(text);
  bool found = false;
  const auto take = [&](auto line) {
    found = true;
    line.line = number_;
    if (first_line_ == 0) first_line_ = number_;
    last_line_ = number_;
    add(line);
  };
  LogText line{.text = text, .number = number_, .bar_done = progress_.last_done()};
  const SkipLogSink sink{[&](const OverflowLine& overflow) { take(overflow); },
                         [&](const StepLine& step) { take(step); },
                         [&](const IterationLine& iteration) { take(iteration); },
                         [&](const ProgressBar& bar) {
                           progress_.add(bar);
                           line.bar_done = bar.done;
                           line.bar_total = bar.total;
                           line.has_bar = true;
                         },
                         [&](EndingLine ending) {
                           ending.line = number_;
                           end_run(ending);
                         },
                         [&](const std::string& note) { notes_.push_back(note); },
                         [&](const OtherScale& other) { take_other_scale(other); },
                         [&](std::string_view name) { only_scale_ = name; },
                         [&] { mentions_.push_back(number_); },
                         [&](const std::string& why) {
                           if (rejected_.empty()) rejected_ = fmt::format("line {} {}", number_, why);
                         }};
  if (end == LineEnd::cut) return static_cast<void>(read_endings({})(line, sink));
  for (std::size_t i = 0; i < readers_.size() && !line.claimed; ++i) {
    line.claimed = readers_[i](line, sink);
    line.taken = found;
  }
  if (line.claimed) static_cast<void>(read_endings({})(line, sink));
}

void SkipLogReader::event_file(std::string_view bytes, const LogColumns& columns) {
  is_empty_ = false;
  notes_.emplace_back("Lines are the records of the event file.");
  SkipLogSink sink;
  sink.iteration = [&](const IterationLine& line) {
    if (first_line_ == 0) first_line_ = line.line;
    last_line_ = std::max(last_line_, line.line);
    add(line);
  };
  sink.note = [&](const std::string& note) { notes_.push_back(note); };
  sink.other_scale = [&](const OtherScale& other) { take_other_scale(other); };
  sink.only_scale = [&](std::string_view name) { only_scale_ = name; };
  sink.reject = [&](const std::string& why) { rejected_ = why; };
  if (read_tensorboard(bytes, columns, sink) == LineEnd::cut)
    notes_.emplace_back("The file ends within a record, which is left out.");
}

void SkipLogReader::take_other_scale(const OtherScale& other) {
  if (!other_scale_.empty()) return;
  other_scale_ = other.name;
  other_scale_line_ = other.line;
  is_other_unreadable_ = !other.has_number && is_scale_name(other_scale_);
}

void SkipLogReader::add(const OverflowLine& line) {
  if (!all_.empty() && all_.front().scaler != line.scaler) {  // a scale of its own
    ++other_scalers_[line.scaler];
    return;
  }
  // Without ranks each process prints the line: an overflow that lowered the scale does not meet it again.
  const bool at_once = progress_.ends_with_overflow() && !since_count_.empty() && !since_iteration_.empty();
  const bool again = at_once && line.next && *line.next < line.scale && all_.back().scale == line.scale &&
                     all_.back().next == line.next;
  if (!line.has_rank && again) {
    ++repeated_;
    return;
  }
  for (auto* const overflows : {&since_count_, &since_iteration_, &all_}) overflows->push_back(line);
  progress_.add(line);
}

void SkipLogReader::add(const StepLine& line) {
  if (!counted_.empty() && counted_.back().line.step == line.step && since_count_.empty()) return;
  while (!counted_.empty() && counted_.back().line.step >= line.step) counted_.pop_back();
  counted_.push_back({line, std::exchange(since_count_, {})});
}

/// The exception is printed by every rank, and its text stands in the traceback too.
void SkipLogReader::end_run(const EndingLine& line) {
  if (line.kind == EndingLine::Kind::not_finite) {
    if (!stopped_line_) stopped_line_ = line.line;
    return;
  }
  if (all_.empty() && !minimum_line_) minimum_line_ = line.line;
  if (all_.empty() || all_.back().ends) return;
  OverflowLine last = all_.back();
  last.scale = last.next.value_or(last.scale);
  last.next.reset();
  last.ends = last.has_rank = true;
  last.line = line.line;
  add(last);
}

SkipLog SkipLogReader::finish() const {
  if (!again_.empty() && !is_interleaved_) {  // a restart that broke off
    SkipLogReader whole = *this;
    for (const IterationLine& repeated : std::exchange(whole.again_, {})) whole.add_once(repeated);
    return whole.finish();
  }
  SkipLog log = steps();
  log.lines = {first_line_, last_line_};
  const bool has_scale = std::ranges::any_of(
      iterations_, [](const CountedIterations& counted) { return counted.line.scale.has_value(); });
  log.is_other_unreadable = is_other_unreadable_;
  if (!(has_scale && log.is_other_unreadable)) log.other_scale = other_scale_;
  log.other_scale_line = other_scale_line_;
  log.only_scale = only_scale_;
  log.cut_line = cut_line_;
  log.stopped_line = stopped_line_;
  log.minimum_line = minimum_line_;
  log.repeated = repeated_;
  log.notes = notes_;
  if (all_.empty()) note_words(log);
  if (repeated_ > 0)
    log.notes.push_back(
        fmt::format("{} lines of overflow repeat the one before: they are taken as those of other processes.",
                    repeated_));
  if (2 * other_scales_ > std::ssize(iterations_))
    log.notes.push_back(fmt::format(
        "Lines of one step have different scales, as lines {} and {} have: the last of each step is read.",
        first_other_scale_.first, first_other_scale_.last));
  if (runs_ > 0)
    log.notes.push_back(fmt::format(
        "The file holds {} runs: the count of steps began anew. This is the last of them.", runs_ + 1));
  for (const auto& [scaler, skips] : other_scalers_)
    log.notes.push_back(fmt::format("Loss scaler {} has a scale of its own: its {} skipped step{} left out.",
                                    scaler, skips, skips == 1 ? " is" : "s are"));
  return log;
}

/// Words that stand beside lines of overflow are those of other processes.
void SkipLogReader::note_words(SkipLog& log) const {
  const auto [lines, uncounted] = mentions_beside(mentions_, iterations_, log);
  if (lines.empty()) return;
  log.told_in_words = std::ssize(lines);
  log.added_by_words = uncounted;
  const bool one = lines.size() == 1;
  log.notes.push_back(fmt::format(
      "{} may tell of {} in words, and {} not read: print the scale beside the step, loss_scale=32768.",
      one ? fmt::format("Line {}", lines.front())
          : fmt::format("{} lines from line {} on", lines.size(), lines.front()),
      one ? "a skipped step" : "skipped steps", one ? "is" : "are"));
}

SkipLog SkipLogReader::steps() const {
  if (is_newest_first())
    throw InvalidArgument(fmt::format(
        "its steps go down from line to line to step {} in line {}, the newest first; sort the lines by "
        "step",
        iterations_.back().line.iteration, iterations_.back().line.line));
  if (has_several_scales())
    throw InvalidArgument(fmt::format(
        "lines of one step have different scales, as lines {} and {} have, and those of the next step have "
        "them again: several scalers, or scales of layers; give the lines of one alone",
        first_other_scale_.first, first_other_scale_.last));
  const bool counts_alone = counted_.empty() && !iterations_.empty() && iterations_.back().line.is_numbered &&
                            (!all_.empty() || stopped_line_);
  if (counts_alone || std::ranges::any_of(iterations_, tells_something)) {
    SkipLog log = log_of_iterations(iterations_, since_iteration_);
    if (!log.steps.empty()) return log;
  }
  if (!counted_.empty()) require_overflow(counted_, since_count_);
  if (all_.empty()) refuse();
  if (!counted_.empty()) {
    SkipLog log = log_of_counts(counted_, since_count_);
    if (!log.steps.empty()) return log;
  }
  std::vector<OverflowLine> rest;
  const std::int64_t total = progress_.longest_bar();
  const std::vector<CountedSteps> counted = progress_.steps_of(total, rest);
  if (counted.empty()) return log_without_counts(all_);
  require_overflow(counted, rest);
  SkipLog log = log_of_counts(counted, rest);
  log.bar_total = total;
  return log;
}

std::string SkipLogReader::why_nothing() const {
  if (is_empty_) return "the file is empty";
  if (!rejected_.empty()) return rejected_;
  if (known_) return fmt::format("it is {}", known_->description);
  if (is_other_unreadable_)
    return fmt::format("no number stands behind '{}' in line {}; print scaler.get_scale() as it is",
                       escaped(other_scale_), other_scale_line_);
  if (!other_scale_.empty())
    return fmt::format(
        "no name of its is known for a loss scale, and '{0}' may be one (line {1}): --columns "
        "loss_scale={0} reads it",
        escaped(other_scale_), other_scale_line_);
  if (iterations_.empty())
    return "no line of it names a step together with a loss scale, a gradient norm, a loss or a skip";
  const IterationLine &first = iterations_.front().line, &last = iterations_.back().line;
  if (last.iteration == 0)
    return fmt::format("its only step is 0 (line {}), before the first update", last.line);
  return fmt::format(
      "its steps {} to {} (lines {} to {}) have finite losses, and none has a loss scale, a gradient norm or "
      "a "
      "skip; print scaler.get_scale() beside the step",
      first.iteration, last.iteration, first.line, last.line);
}

void SkipLogReader::refuse() const {
  throw InvalidArgument(
      fmt::format("{}; read are logs of DeepSpeed, Megatron-LM, fairseq, Apex, MAE and Hugging Face's "
                  "Trainer, CSV and any line with a step and a loss_scale or grad_norm (--columns names "
                  "them), and traces: "
                  "{{\"step\": 1, \"scale\": 65536, \"gradients\": {{\"finite\": true, \"max_abs\": 12.5}}}}",
                  why_nothing()));
}

}  // namespace halfscope
