// Restarts that no count shows, since the run ended before the next line that counts steps.
#include <cmath>

#include <halfscope/scaling/detail/skip_log_windows.hpp>

namespace halfscope {
namespace {

constexpr std::int64_t usual_growth = 1000;  // steps: DeepSpeed's and Megatron-LM's default

/// Doublings from one scale to another; scales may be rounded where they are printed.
int doublings_between(double before, double after) {
  constexpr double rounding = 0.05;
  const double log2 = std::log2(after / before);
  if (std::abs(log2) < rounding) return 0;
  return static_cast<int>(log2 > 0 ? std::ceil(log2 - rounding) : std::floor(log2 + rounding));
}

/// The fewest steps of a doubling that the log shows, and those since its last skipped step.
class Growths {
 public:
  explicit Growths(const SkipLog& log) {
    for (std::size_t i = 0; i < log.steps.size(); ++i) {
      if (i > 0) look_at(log.steps[i - 1], log.steps[i]);
      if (log.steps[i].skipped) last_skip_ = log.steps[i].step;
    }
    if (last_skip_) since_ = log.steps.back().step - *last_skip_;
  }

  /// Whether a scale grows so in `steps` after the last of the log. Without a skipped step in it a growth may
  /// come at any.
  [[nodiscard]] bool explain(int doublings, std::int64_t steps) const {
    return !last_skip_ || (since_ + steps) / shortest_ >= doublings;
  }
  [[nodiscard]] std::int64_t shortest() const { return shortest_; }

 private:
  void look_at(const LoggedStep& before, const LoggedStep& step) {
    const int doublings = doublings_between(before.scale, step.scale);
    if (doublings <= 0 || !last_skip_ || step.after_hole) return;
    shortest_ = std::min(shortest_, std::max<std::int64_t>(1, (step.step - *last_skip_) / doublings));
  }

  std::int64_t shortest_ = usual_growth, since_ = 0;
  std::optional<std::int64_t> last_skip_{};
};

}  // namespace

std::optional<PossibleRestart> possible_restart(const SkipLog& log, const LastCount& last,
                                                const std::vector<OverflowLine>& rest) {
  const Growths growths(log);
  std::optional<PossibleRestart> found;
  double scale = last.scale;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const int doublings = scale > 0 ? doublings_between(scale, rest[i].scale) : 0;
    const bool has_grown = doublings > 0 && (i == 0 ? growths.explain(doublings, last.interval)
                                                    : last.interval / growths.shortest() >= doublings);
    if (doublings != 0 && !has_grown)
      found = {rest[i].line, scale, rest[i].scale, std::ssize(rest) - static_cast<std::int64_t>(i)};
    scale = rest[i].next.value_or(rest[i].scale);
  }
  return found;
}

}  // namespace halfscope
