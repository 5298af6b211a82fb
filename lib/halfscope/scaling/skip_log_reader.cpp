// Puts the lines of a log together to steps.
#include <halfscope/scaling/detail/skip_log_reader.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include <halfscope/core/error.hpp>
#include <halfscope/scaling/scaler_options.hpp>

namespace halfscope {
namespace {

/// Some steps that one line of a log counts: those after `first` up to `last`.
struct Window {
  std::int64_t first = 0, last = 0;

  [[nodiscard]] std::int64_t size() const { return last - first; }
};

/// Where the first of several windows begins: they are taken to be equally long.
std::int64_t first_begins(std::int64_t first, std::int64_t second) {
  return std::max<std::int64_t>(0, first - (second - first));
}

constexpr std::int64_t most_skipped = 1'000'000;

/// Adds a window's steps: first those that were skipped, at their scales, then those that were not, at
/// `finite`.
void add_window(const Window& window, const std::vector<double>& skipped, const LoggedStep& finite,
                SkipLog& log) {
  const auto room = static_cast<std::size_t>(window.size());
  const std::size_t count = std::min(skipped.size(), room);
  log.skipped += static_cast<std::int64_t>(count);
  if (log.skipped > most_skipped)
    throw InvalidArgument(fmt::format("more than {} skipped steps; give the log of one run", most_skipped));
  std::int64_t step = window.first;
  for (std::size_t i = skipped.size() - count; i < skipped.size(); ++i)
    log.steps.push_back({.step = ++step, .scale = skipped[i], .skipped = true});
  if (count < room) {
    log.unsure_steps += static_cast<std::int64_t>(count);
    if (step + 1 < window.last) log.steps.push_back({.step = step + 1, .scale = finite.scale});
    log.steps.push_back({window.last, finite.scale, false, finite.grad_norm});
  }
}

/// A scale that falls by halves, from `before` to `after`, in `count` skipped steps: hysteresis forgives the
/// first ones. The scale before all of them where it did not fall by halves.
std::vector<double> falling_scales(double before, double after, std::int64_t count) {
  const double halvings = std::log2(before / after);
  const bool falls =
      halvings == std::floor(halvings) && halvings >= 0 && halvings <= static_cast<double>(count);
  std::vector<double> scales(static_cast<std::size_t>(count), before);
  const std::size_t lowered = falls ? static_cast<std::size_t>(halvings) : 0;
  for (std::size_t i = scales.size() - lowered + 1; i < scales.size(); ++i) scales[i] = scales[i - 1] / 2;
  return scales;
}

bool has_overflows(const CountedSteps& counted) {
  return !counted.overflows.empty();
}

/// The steps that lines count, and the overflows after the last of them.
SkipLog deepspeed_log(const std::vector<CountedSteps>& counted, const std::vector<OverflowLine>& rest) {
  SkipLog log;
  const auto first = std::ranges::find_if(counted, has_overflows);
  double scale = (first != counted.end() ? first->overflows : rest).front().scale;
  const auto& [first_line, first_overflows] = counted.front();
  const std::int64_t begin = counted.size() > 1 ? first_begins(first_line.step, counted[1].line.step) : 0;
  StepLine before{begin, begin == 0 ? 0 : first_line.skipped - std::ssize(first_overflows)};
  const auto take = [&](const Window& window, std::span<const OverflowLine> overflows) {
    std::vector<double> scales;
    for (const OverflowLine& overflow : overflows) {
      scales.push_back(overflow.scale);
      scale = overflow.next.value_or(overflow.scale);
    }
    add_window(window, scales, {.scale = scale}, log);
  };
  for (const auto& [line, overflows] : counted) {
    const std::int64_t skipped = line.skipped - before.skipped, found = std::ssize(overflows);
    // Those too many were printed by an attempt that broke off.
    const std::int64_t extra = skipped >= 0 ? std::max<std::int64_t>(0, found - skipped) : 0;
    take({before.step, line.step}, std::span(overflows).subspan(static_cast<std::size_t>(extra)));
    log.missing += std::max<std::int64_t>(0, skipped - found);
    before = line;
  }
  if (!rest.empty()) {
    take({before.step, before.step + std::ssize(rest)}, rest);
    log.unsure_steps += std::ssize(rest);
  }
  return log;
}

SkipLog log_of_progress(const ProgressLog& progress) {
  std::vector<OverflowLine> rest;
  const std::int64_t total = progress.longest_bar();
  const std::vector<CountedSteps> counted = progress.steps_of(total, rest);
  if (counted.empty()) {
    throw InvalidArgument(
        "DeepSpeed's lines of skipped steps, but none that counts steps ('step=10, skipped=2'), and no "
        "progress "
        "bar; set steps_per_print, best to 1");
  }
  SkipLog log = deepspeed_log(counted, rest);
  log.bar_total = total;
  return log;
}

}  // namespace

void SkipLogReader::line(std::string_view text) {
  const SkipLogSink sink{[&](const OverflowLine& found) { add(found); },
                         [&](const StepLine& found) { add(found); },
                         [&](const IterationLine& found) { add(found); },
                         [&](const ProgressBar& found) { progress_.add(found); }};
  find_in_log_line(text, sink);
}

void SkipLogReader::add(const OverflowLine& line) {
  // Without ranks each process prints the line: an overflow that lowered the scale does not meet it again.
  if (!line.has_rank && progress_.ends_with_overflow() && line.next && *line.next < line.scale &&
      !overflows_.empty() && overflows_.back().scale == line.scale && overflows_.back().next == line.next) {
    return;
  }
  overflows_.push_back(line);
  progress_.add(line);
}

void SkipLogReader::add(const StepLine& line) {
  if (!counted_.empty() && counted_.back().line.step == line.step && overflows_.empty()) return;
  while (!counted_.empty() && counted_.back().line.step >= line.step) counted_.pop_back();
  counted_.push_back({line, std::move(overflows_)});
  overflows_.clear();
}

void SkipLogReader::add(const IterationLine& line) {
  while (!iterations_.empty() && iterations_.back().iteration >= line.iteration) iterations_.pop_back();
  iterations_.push_back(line);
}

SkipLog SkipLogReader::finish() const {
  const bool overflowed = !overflows_.empty() || std::ranges::any_of(counted_, has_overflows);
  if (iterations_.empty() && !overflowed && !counted_.empty()) {
    throw InvalidArgument(
        "DeepSpeed's lines that count steps, but none of a skipped step: only those tell the loss scale");
  }
  const SkipLog log = !iterations_.empty()             ? megatron_log()
                      : overflowed && counted_.empty() ? log_of_progress(progress_)
                      : overflowed                     ? deepspeed_log(counted_, overflows_)
                                                       : SkipLog{};
  if (!log.steps.empty()) return log;
  throw InvalidArgument(
      "there is no step in it: neither JSON lines of a run nor a line of DeepSpeed's or Megatron-LM's that "
      "tells of skipped steps");
}

SkipLog SkipLogReader::megatron_log() const {
  SkipLog log;
  log.format = SkipLogFormat::megatron;
  const IterationLine& first = iterations_.front();
  std::int64_t begin = first.iteration - std::max<std::int64_t>(1, first.skipped);
  if (iterations_.size() > 1) begin = first_begins(first.iteration, iterations_[1].iteration);
  std::optional<double> known;  // the scale before the line
  for (const IterationLine& line : iterations_) {
    const Window window{begin, line.iteration};
    const std::int64_t skipped = std::min(line.skipped, window.size());
    // By default Megatron-LM forgives the first overflow.
    const auto halvings = static_cast<int>(std::max<std::int64_t>(0, skipped - 1));
    const double before = known.value_or(std::min(std::ldexp(line.scale, halvings), largest_scale));
    const std::vector<double> scales = falling_scales(before, line.scale, skipped);
    const bool one = window.size() == 1,
               all_lower = std::ldexp(line.scale, static_cast<int>(skipped)) == before;
    if (!known || (!one && !all_lower)) log.unsure_scales += skipped;
    const double finite = one ? before : std::min(before, line.scale);
    add_window(window, scales, {.scale = finite, .grad_norm = line.grad_norm}, log);
    begin = line.iteration;
    known = line.scale;
  }
  return log;
}

}  // namespace halfscope
