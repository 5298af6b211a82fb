// Counts the steps of a log by its progress bar.
#include <halfscope/scaling/detail/skip_log_reader.hpp>

#include <algorithm>
#include <map>

namespace halfscope {

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
  StepLine last;
  for (const Event& event : events_) {
    if (event.bar.total == 0) {
      rest.push_back(event.overflow);
    } else if (event.bar.total == total && event.bar.done > last.step) {
      last.step = event.bar.done;
      last.skipped += std::ssize(rest);
      counted.push_back({last, std::move(rest)});
      rest.clear();
    } else if (event.bar.total == total && event.bar.done < last.step) {
      return {};  // the bar of another epoch
    }
  }
  return counted;
}

}  // namespace halfscope
