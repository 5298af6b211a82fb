// Counts the steps of a log by its progress bar.
#include <halfscope/scaling/detail/skip_log_reader.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace halfscope {
namespace {

std::int64_t step_before(const std::vector<CountedSteps>& counted, std::size_t index) {
  return index == 0 ? 0 : counted[index - 1].line.step;
}

/// The steps between two bars, as half of them have it at most.
std::int64_t usual_move(const std::vector<CountedSteps>& counted) {
  std::vector<std::int64_t> moves;
  for (std::size_t i = 0; i < counted.size(); ++i)
    moves.push_back(counted[i].line.step - step_before(counted, i));
  std::ranges::nth_element(moves, moves.begin() + std::ssize(moves) / 2);
  return moves[moves.size() / 2];
}

/// Bars have no counter: the overflows between them are their skips, and a long move is a hole.
void number_skips(std::vector<CountedSteps>& counted) {
  constexpr std::int64_t longest_move = 4;
  if (counted.empty()) return;
  const std::int64_t usual = usual_move(counted);
  std::int64_t skipped = 0;
  for (std::size_t i = 0; i < counted.size(); ++i) {
    CountedSteps& steps = counted[i];
    steps.line.skipped = skipped += std::ssize(steps.overflows);
    const bool is_long = i > 0 && steps.line.step - step_before(counted, i) > longest_move * usual;
    if (is_long && steps.gap == LogGap::none) steps.gap = LogGap::hole;
  }
}

}  // namespace

void ProgressLog::add(const OverflowLine& line) {
  events_.push_back({{}, line});
}

void ProgressLog::add(const ProgressBar& bar) {
  if (bar.total == 0) return;
  last_done_ = bar.done;
  const bool drawn_again =
      !events_.empty() && events_.back().bar.total == bar.total && events_.back().bar.done == bar.done;
  if (!drawn_again) events_.push_back({bar, {}});
}

std::int64_t ProgressLog::longest_bar() const {
  std::map<std::int64_t, std::int64_t> moves;
  for (const Event& event : events_) {
    if (event.bar.total > 0) ++moves[event.bar.total];
  }
  const auto most = std::ranges::max_element(moves, {}, [](const auto& bar) { return bar.second; });
  return most == moves.end() ? 0 : most->first;
}

std::vector<CountedSteps> ProgressLog::steps_of(std::int64_t total, std::vector<OverflowLine>& rest) const {
  std::vector<CountedSteps> counted;
  for (const Event& event : events_) {
    const std::int64_t done = event.bar.done, before = counted.empty() ? 0 : counted.back().line.step;
    if (event.bar.total == 0) {
      rest.push_back(event.overflow);
    } else if (event.bar.total == total && done != before) {
      if (done < before && done <= 1) return {};  // the bar of another epoch
      while (!counted.empty() && counted.back().line.step >= done) counted.pop_back();
      counted.push_back({{done, 0}, std::exchange(rest, {}), done < before ? LogGap::restart : LogGap::none});
    }
  }
  number_skips(counted);
  return counted;
}

}  // namespace halfscope
