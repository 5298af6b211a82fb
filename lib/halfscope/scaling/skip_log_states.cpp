// Collects lines of state: what a step's lines tell together, restarts, and processes that lag behind others.
#include <algorithm>
#include <cmath>
#include <utility>

#include <halfscope/scaling/detail/skip_log_reader.hpp>

namespace halfscope {
namespace {

/// Two lines of one step: what the later does not tell stays.
IterationLine merged(const IterationLine& before, IterationLine line) {
  if (!line.scale) line.scale = before.scale;
  if (!line.grad_norm) line.grad_norm = before.grad_norm;
  if (!line.loss) line.loss = before.loss;
  if (!line.bad_scale) line.bad_scale = before.bad_scale;
  if (!line.skipped) line.skipped = before.skipped;
  line.overflowed = line.overflowed || before.overflowed;
  line.tells_overflow = line.tells_overflow || before.tells_overflow;
  line.has_finite_norm = line.has_finite_norm || before.has_finite_norm;
  return line;
}

bool is_same(std::optional<double> a, std::optional<double> b) {
  return a.has_value() == b.has_value() && (!a || *a == *b || (std::isnan(*a) && std::isnan(*b)));
}

/// Whether two lines of a step tell the same; losses of processes differ.
bool tells_the_same(const IterationLine& a, const IterationLine& b) {
  const auto is_finite = [](const std::optional<double>& loss) { return loss && std::isfinite(*loss); };
  return is_same(a.scale, b.scale) && is_same(a.bad_scale, b.bad_scale) &&
         is_same(a.grad_norm, b.grad_norm) && a.skipped == b.skipped && a.overflowed == b.overflowed &&
         is_finite(a.loss) == is_finite(b.loss);
}

}  // namespace

void SkipLogReader::add(const IterationLine& line) {
  constexpr std::size_t longest_lag = 8;  // lines
  if (repeats(line)) return again_.push_back(line);
  const bool goes_on = !iterations_.empty() && line.iteration > iterations_.back().line.iteration;
  std::vector<IterationLine> again = std::exchange(again_, {});
  is_interleaved_ = is_interleaved_ || (goes_on && !again.empty() && again.size() <= longest_lag);
  if (!goes_on)
    for (const IterationLine& repeated : again) add_once(repeated);
  add_once(line);
}

bool SkipLogReader::repeats(const IterationLine& line) const {
  if (iterations_.empty() || !since_iteration_.empty()) return false;
  const std::int64_t last = iterations_.back().line.iteration;
  if (line.iteration > last || (line.iteration == last && again_.empty())) return false;
  const auto known =
      std::ranges::lower_bound(iterations_, line.iteration, {},
                               [](const CountedIterations& counted) { return counted.line.iteration; });
  return known->line.iteration == line.iteration && known->overflows.empty() &&
         tells_the_same(known->line, line);
}

/// Printed twice, or no step was taken since.
void SkipLogReader::merge_last(const IterationLine& line) {
  CountedIterations& last = iterations_.back();
  if (line.scale && first_of_step_ == last.line.scale && line.scale != last.line.scale) ++differing_;
  if (line.scale && last.line.scale && *line.scale != *last.line.scale && other_scales_++ == 0)
    first_other_scale_ = {last.line.line, line.line};
  last.line = merged(last.line, line);
  last.overflows.insert(last.overflows.end(), since_iteration_.begin(), since_iteration_.end());
  since_iteration_.clear();
}

void SkipLogReader::add_once(const IterationLine& line) {
  const std::int64_t last = iterations_.empty() ? -1 : iterations_.back().line.iteration;
  if (line.iteration != last) ++states_;
  if (line.iteration < last) ++falls_;
  if (!iterations_.empty() && iterations_.back().line.iteration == line.iteration) return merge_last(line);
  const bool is_next = !iterations_.empty() && line.iteration > last && line.scale && first_of_step_;
  if (is_next && line.scale == first_of_step_ && line.scale != iterations_.back().line.scale) ++returns_;
  first_of_step_ = line.scale;
  std::optional<std::vector<OverflowLine>> repeated;  // by the first line that stands again
  for (; !iterations_.empty() && iterations_.back().line.iteration >= line.iteration; iterations_.pop_back())
    repeated = std::move(iterations_.back().overflows);
  if (repeated && iterations_.empty()) ++runs_;
  const bool is_open = repeated && (!repeated->empty() || !since_iteration_.empty());
  std::vector<OverflowLine> overflows = std::exchange(since_iteration_, {});
  // A line that counts updates does not count skips before the checkpoint, which the first attempt printed.
  if (is_open && line.format == "fairseq") {
    std::erase_if(*repeated, [](const OverflowLine& overflow) { return overflow.ends; });
    overflows.insert(overflows.begin(), repeated->begin(), repeated->end());
  }
  const LogGap gap = is_open ? LogGap::restart : repeated ? LogGap::seam : LogGap::none;
  iterations_.push_back({line, std::move(overflows), gap});
}

}  // namespace halfscope
