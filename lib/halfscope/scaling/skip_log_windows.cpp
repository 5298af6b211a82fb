// Steps of one line of a log, and those that a counter or a progress bar counts.
#include <halfscope/scaling/detail/skip_log_windows.hpp>

#include <fmt/format.h>

#include <span>

#include <halfscope/core/error.hpp>
#include <halfscope/scaling/detail/skip_log_reader.hpp>

namespace halfscope {
namespace {

constexpr std::int64_t most_skipped_steps = 1'000'000;

/// Whether every line of a window is there.
enum class Whole : std::uint8_t { no, yes };

bool has_overflows(const CountedSteps& counted) {
  return !counted.overflows.empty();
}

}  // namespace

void add_window(const LogWindow& window, const std::vector<SkippedAt>& skipped, const LoggedStep& finite,
                SkipLog& log) {
  const auto room = static_cast<std::size_t>(window.size());
  const std::size_t count = std::min(skipped.size(), room), begin = log.steps.size();
  log.skipped += static_cast<std::int64_t>(count);
  if (log.skipped > most_skipped_steps)
    throw InvalidArgument(
        fmt::format("more than {} skipped steps; give the log of one run", most_skipped_steps));
  std::int64_t step = window.first;
  for (const SkippedAt& skip : std::span(skipped).last(count)) {
    log.steps.push_back({.step = ++step,
                         .scale = skip.scale,
                         .skipped = true,
                         .high = skip.high,
                         .hidden = skip.hidden,
                         .line = skip.line > 0 ? skip.line : window.line});
    log.hidden_skips += skip.hidden;
  }
  if (count < room) {
    log.unsure_steps += static_cast<std::int64_t>(count);
    if (step + 1 < window.last)
      log.steps.push_back({.step = step + 1,
                           .scale = finite.scale,
                           .low = finite.lost ? 0 : finite.low,
                           .line = window.line});
    LoggedStep last = finite;
    last.step = window.last;
    last.line = window.line;
    log.steps.push_back(last);
  }
  if (window.after_hole && begin < log.steps.size()) log.steps[begin].after_hole = true;
}

SkipLog log_of_counts(const std::vector<CountedSteps>& counted, const std::vector<OverflowLine>& rest) {
  SkipLog log;
  const auto first = std::ranges::find_if(counted, has_overflows);
  double scale = (first != counted.end() ? first->overflows : rest).front().scale;
  log.format = (first != counted.end() ? first->overflows : rest).front().format;
  const StepLine first_line = counted.front().line;
  const std::int64_t begin = counted.size() > 1 ? first_begins(first_line.step, counted[1].line.step) : 0;
  StepLine before{begin, begin == 0 ? 0 : first_line.skipped - std::ssize(counted.front().overflows)};
  double low = 0;  // lower bound of the scale; 0: no line has told of it
  const std::int64_t interval =
      counted.back().line.step - (counted.size() > 1 ? counted[counted.size() - 2].line.step : begin);
  const auto take = [&](const LogWindow& window, std::span<const OverflowLine> overflows, Whole whole) {
    std::vector<SkippedAt> skipped;
    for (const OverflowLine& overflow : overflows) {
      skipped.push_back({.scale = overflow.scale, .line = overflow.line});
      scale = overflow.next.value_or(overflow.scale);
      low = std::min(low, scale);
    }
    if (whole == Whole::no) low = 0;
    add_window(window, skipped, {.scale = scale, .low = low}, log);
    if (!overflows.empty() && whole == Whole::yes) low = scale;
  };
  for (const auto& [line, overflows, gap] : counted) {
    const std::int64_t skipped = line.skipped - before.skipped, found = std::ssize(overflows);
    // Overflows beyond the skipped steps were printed by an attempt that broke off.
    const std::int64_t extra = skipped >= 0 ? std::max<std::int64_t>(0, found - skipped) : 0;
    const std::int64_t missing = std::max<std::int64_t>(0, skipped - found);
    const auto sure = std::span(overflows).subspan(static_cast<std::size_t>(extra));
    take({before.step, line.step, false, line.line},
         gap == LogGap::restart ? std::span<const OverflowLine>() : sure,
         gap != LogGap::none || missing > 0 ? Whole::no : Whole::yes);
    log.missing += missing;
    if (gap != LogGap::none) log.unknown_steps += line.step - before.step;
    before = line;
  }
  if (!rest.empty()) {
    log.restart = possible_restart(log, {low, interval}, rest);
    take({before.step, before.step + std::ssize(rest)}, rest, Whole::yes);
    log.unsure_steps += std::ssize(rest);
    if (rest.back().ends) log.ended = log.steps.back().step;
  }
  if (!log.ended && !log.steps.empty() && log.steps.back().skipped) log.next_scale = scale;
  return log;
}

}  // namespace halfscope
