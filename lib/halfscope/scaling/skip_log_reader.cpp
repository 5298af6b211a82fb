// Collects the lines of a log, and chooses what counts its steps.
#include <halfscope/scaling/detail/skip_log_reader.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <halfscope/core/error.hpp>

namespace halfscope {
namespace {

/// The overflows alone, numbered one by one.
SkipLog log_without_counts(const std::vector<OverflowLine>& overflows) {
  SkipLog log;
  log.format = overflows.front().format;
  for (const OverflowLine& overflow : overflows)
    log.steps.push_back({.step = std::ssize(log.steps) + 1, .scale = overflow.scale, .skipped = true});
  log.skipped = log.unsure_steps = std::ssize(log.steps);
  log.counts_steps = false;
  if (overflows.back().ends)
    log.ended = log.steps.back().step;
  else
    log.next_scale = scale_after(overflows);
  return log;
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

LogLineReader read_nothing() {
  return [](const LogText& /*line*/, const SkipLogSink& /*sink*/) {};
}

SkipLogReader::SkipLogReader() {
  for (const LogFormat& format : log_formats) readers_.push_back(format.reader());
}

void SkipLogReader::line(std::string_view text) {
  is_empty_ = is_empty_ && text.find_first_not_of(" \t\r") == std::string_view::npos;
  const SkipLogSink sink{[&](const OverflowLine& found) { add(found); },
                         [&](const StepLine& found) { add(found); },
                         [&](const IterationLine& found) { add(found); },
                         [&](const ProgressBar& found) { progress_.add(found); }, [&] { end_run(); }};
  for (const LogFormat& format : log_formats) {
    if (!known_ && !format.sign.empty() && text.find(format.sign) != std::string_view::npos) known_ = &format;
  }
  while (!text.empty()) {  // progress bars join lines
    const std::size_t end = std::min(text.find('\r'), text.size());
    for (const LogLineReader& read : readers_) read({text.substr(0, end), progress_.last_done()}, sink);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void SkipLogReader::add(const OverflowLine& line) {
  // Without ranks each process prints the line: an overflow that lowered the scale does not meet it again.
  const bool at_once = progress_.ends_with_overflow() && !since_count_.empty() && !since_iteration_.empty();
  const bool again = at_once && line.next && *line.next < line.scale && all_.back().scale == line.scale &&
                     all_.back().next == line.next;
  if (!line.has_rank && again) return;
  for (auto* const overflows : {&since_count_, &since_iteration_, &all_}) overflows->push_back(line);
  progress_.add(line);
}

void SkipLogReader::add(const StepLine& line) {
  if (!counted_.empty() && counted_.back().line.step == line.step && since_count_.empty()) return;
  while (!counted_.empty() && counted_.back().line.step >= line.step) counted_.pop_back();
  counted_.push_back({line, std::exchange(since_count_, {})});
}

void SkipLogReader::add(const IterationLine& line) {
  const bool again = !iterations_.empty() && iterations_.back().line.iteration == line.iteration;
  if (again) {  // printed twice, or no step was taken since
    CountedIterations& last = iterations_.back();
    last.line = line;
    last.overflows.insert(last.overflows.end(), since_iteration_.begin(), since_iteration_.end());
    since_iteration_.clear();
    return;
  }
  std::optional<bool> repeats_overflows;  // whether the first line that is repeated had some
  for (; !iterations_.empty() && iterations_.back().line.iteration >= line.iteration; iterations_.pop_back())
    repeats_overflows = !iterations_.back().overflows.empty();
  const bool is_open = repeats_overflows && (*repeats_overflows || !since_iteration_.empty());
  iterations_.push_back(
      {line, std::exchange(since_iteration_, {}), is_open ? LogGap::restart : LogGap::none});
}

/// The exception is printed by every rank, and its text stands in the traceback too.
void SkipLogReader::end_run() {
  if (all_.empty() || all_.back().ends) return;
  OverflowLine last = all_.back();
  last.scale = last.next.value_or(last.scale);
  last.next.reset();
  last.ends = last.has_rank = true;
  add(last);
}

SkipLog SkipLogReader::finish() const {
  if (!iterations_.empty()) {
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

void SkipLogReader::refuse() const {
  const std::string what = is_empty_ ? "the file is empty: there is no step in it"
                           : known_  ? fmt::format("it is {}", known_->description)
                                     : "there is no step in it";
  throw InvalidArgument(
      fmt::format("{}; read are logs of DeepSpeed, Megatron-LM, fairseq, Apex, MAE and Hugging Face's "
                  "Trainer, CSV with step and loss_scale, and traces: "
                  "{{\"step\": 1, \"scale\": 65536, \"gradients\": {{\"finite\": true, \"max_abs\": 12.5}}}}",
                  what));
}

}  // namespace halfscope
