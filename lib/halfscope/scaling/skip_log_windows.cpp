// Steps of one line of a log, and those that a counter or a progress bar counts.
#include <halfscope/scaling/detail/skip_log_windows.hpp>

#include <fmt/format.h>

#include <span>

#include <halfscope/core/error.hpp>
#include <halfscope/scaling/detail/skip_log_reader.hpp>

namespace halfscope {
namespace {

constexpr std::int64_t most_skipped_steps = 1'000'000;

bool has_overflows(const CountedSteps& counted) {
  return !counted.overflows.empty();
}

}  // namespace

void add_window(const LogWindow& window, const std::vector<double>& skipped, const LoggedStep& finite,
                SkipLog& log) {
  const auto room = static_cast<std::size_t>(window.size());
  const std::size_t count = std::min(skipped.size(), room), begin = log.steps.size();
  log.skipped += static_cast<std::int64_t>(count);
  if (log.skipped > most_skipped_steps)
    throw InvalidArgument(
        fmt::format("more than {} skipped steps; give the log of one run", most_skipped_steps));
  std::int64_t step = window.first;
  for (std::size_t i = skipped.size() - count; i < skipped.size(); ++i)
    log.steps.push_back({.step = ++step, .scale = skipped[i], .skipped = true});
  if (count < room) {
    log.unsure_steps += static_cast<std::int64_t>(count);
    if (step + 1 < window.last)
      log.steps.push_back({.step = step + 1, .scale = finite.scale, .scale_is_guess = finite.scale_is_guess});
    LoggedStep last = finite;
    last.step = window.last;
    log.steps.push_back(last);
  }
  if (window.after_hole && begin < log.steps.size()) log.steps[begin].after_hole = true;
}

SkipLog log_of_counts(const std::vector<CountedSteps>& counted, const std::vector<OverflowLine>& rest) {
  SkipLog log;
  const auto first = std::ranges::find_if(counted, has_overflows);
  double scale = (first != counted.end() ? first->overflows : rest).front().scale;
  log.format = (first != counted.end() ? first->overflows : rest).front().format;
  const auto& [first_line, first_overflows] = counted.front();
  const std::int64_t begin = counted.size() > 1 ? first_begins(first_line.step, counted[1].line.step) : 0;
  StepLine before{begin, begin == 0 ? 0 : first_line.skipped - std::ssize(first_overflows)};
  bool overflowed = false;  // so that a line has told of the scale
  const auto take = [&](const LogWindow& window, std::span<const OverflowLine> overflows) {
    std::vector<double> scales;
    for (const OverflowLine& overflow : overflows) {
      scales.push_back(overflow.scale);
      scale = overflow.next.value_or(overflow.scale);
    }
    add_window(window, scales, {.scale = scale, .scale_is_guess = !overflowed}, log);
    overflowed = overflowed || !overflows.empty();
  };
  for (const auto& [line, overflows] : counted) {
    const std::int64_t skipped = line.skipped - before.skipped, found = std::ssize(overflows);
    // Overflows beyond the skipped steps were printed by an attempt that broke off.
    const std::int64_t extra = skipped >= 0 ? std::max<std::int64_t>(0, found - skipped) : 0;
    take({before.step, line.step}, std::span(overflows).subspan(static_cast<std::size_t>(extra)));
    log.missing += std::max<std::int64_t>(0, skipped - found);
    before = line;
  }
  if (!rest.empty()) {
    take({before.step, before.step + std::ssize(rest)}, rest);
    log.unsure_steps += std::ssize(rest);
    if (rest.back().ends) log.ended = log.steps.back().step;
  }
  return log;
}

}  // namespace halfscope
