// Lines that tell of skipped steps in words, beside steps whose scale or norm tells of them too.
#include <algorithm>
#include <limits>

#include <halfscope/scaling/detail/skip_log_reader.hpp>

namespace halfscope {
namespace {

using LineNumbers = std::vector<std::int64_t>;

/// Whether no line tells that the step was not skipped, so that it counts among the skipped ones at most.
bool is_open(const LoggedStep& step, const SkipLog& log) {
  const bool has_open = log.unseen_steps + log.open_steps > 0;
  return has_open && !step.skipped && step.low == 0 && !step.grad_norm && !step.lost;
}

template <typename Choice>
LineNumbers lines_of(const SkipLog& log, Choice&& choice) {
  LineNumbers lines;
  for (const LoggedStep& step : log.steps)
    if (choice(step)) lines.push_back(step.line);
  std::ranges::sort(lines);
  return lines;
}

/// Lines that may tell the scale of the step of which words speak: from the last line of state up to the
/// words, to the second behind them. Words stand before or behind the line of their step, or in it, and a
/// scale that is the step's own falls in the line of the next.
LogLines around(std::int64_t words, const std::vector<std::int64_t>& states) {
  const auto behind = std::ranges::upper_bound(states, words);
  const std::int64_t before = behind == states.begin() ? 0 : behind[-1];
  const std::ptrdiff_t second = before == words ? 0 : 1;
  const bool has_second = states.end() - behind > second;
  return {before, has_second ? behind[second] : std::numeric_limits<std::int64_t>::max()};
}

/// Words that are left where each of the steps in these lines takes one of those near it.
LineNumbers unmatched(const LineNumbers& mentions, const LineNumbers& states, const LineNumbers& steps) {
  LineNumbers left;
  auto step = steps.begin();
  for (const std::int64_t words : mentions) {  // both ends of the lines around them ascend
    const LogLines near = around(words, states);
    while (step != steps.end() && *step < near.first) ++step;
    if (step != steps.end() && *step <= near.last)
      ++step;
    else
      left.push_back(words);
  }
  return left;
}

}  // namespace

Mentions mentions_beside(const std::vector<std::int64_t>& mentions,
                         const std::vector<CountedIterations>& iterations, const SkipLog& log) {
  LineNumbers states;
  for (const CountedIterations& counted : iterations) states.push_back(counted.line.line);
  std::ranges::sort(states);
  const LineNumbers unread =
      unmatched(mentions, states, lines_of(log, [](const LoggedStep& step) { return step.skipped; }));
  const LineNumbers open = lines_of(log, [&](const LoggedStep& step) { return is_open(step, log); });
  return {unread, std::ssize(unmatched(unread, states, open))};
}

}  // namespace halfscope
