// Evidence of losses and norms: a finite one proves that the weights live up to its step.
#include <algorithm>
#include <cmath>

#include <halfscope/scaling/detail/skip_log_reader.hpp>

namespace halfscope {
namespace {

bool has_bad_norm(const IterationLine& line) {
  return line.grad_norm && std::isnan(*line.grad_norm);
}

bool has_good_norm(const IterationLine& line) {
  return (line.grad_norm && std::isfinite(*line.grad_norm)) || line.has_finite_norm;
}

/// A loss of 0 beside a finite norm is a loss of 0.
bool is_filtered_out(const IterationLine& line) {
  return line.is_filtered && line.loss && *line.loss == 0 && !has_good_norm(line);
}

bool has_bad_loss(const IterationLine& line) {
  return (line.loss && std::isnan(*line.loss)) || is_filtered_out(line);
}

/// Whether it tells of a step that was not finite.
bool is_bad(const IterationLine& line) {
  return has_bad_norm(line) || line.not_finite > 0 || (has_bad_loss(line) && !has_good_norm(line));
}

/// Whether it shows that the weights before its step were finite. A loss of 0 beside a norm that is not
/// finite may be what a filter leaves.
bool shows_life(const IterationLine& line) {
  const bool is_filtered_zero = is_filtered_out(line) || (line.loss && *line.loss == 0 && has_bad_norm(line));
  return has_good_norm(line) || (line.loss && std::isfinite(*line.loss) && !is_filtered_zero);
}

bool falls(const IterationLine& before, const IterationLine& after) {
  return before.scale && after.scale && *after.scale < *before.scale;
}

class Evidence {
 public:
  Evidence(std::vector<CountedIterations>& iterations, SkipLog& log) : iterations_(iterations), log_(log) {
    for (std::size_t i = 0; i < iterations.size(); ++i) {
      if (shows_life(iterations[i].line)) alive_ = static_cast<std::ptrdiff_t>(i);
    }
    for (std::size_t i = 1; i + 1 < iterations.size(); ++i) {
      const bool is_alone = !is_bad(iterations[i - 1].line) && !is_bad(iterations[i + 1].line);
      has_single_ = has_single_ || (is_bad(iterations[i].line) && is_alone);
    }
  }

  void settle() {
    std::ptrdiff_t reacted = -2;  // the last line that is not finite behind one at which the scale fell
    for (std::ptrdiff_t i = 0; i < std::ssize(iterations_); ++i) {
      if (!is_bad(line(i))) continue;
      const bool is_told = is_explained(i), goes_on = reacted + 1 == i;
      if (is_told || goes_on) reacted = i;
      if (is_told) continue;
      if (i < alive_) {
        disprove(i);
      } else if (goes_on) {
        ++log_.again;  // at a floor, or rounded: the scaler skips it as those before it
      } else {
        lose(i);
      }
    }
    if (log_.lost) bound_lost();
    if (iterations_.empty()) return;
    // The last step may have been skipped, whatever the lines before it tell: no line behind it shows a fall.
    const IterationLine& last = iterations_.back().line;
    log_.again += last.has_means && !last.has_own_norm && is_bad(last) ? 1 : 0;
    if (is_bad(last) && !last.has_means && !log_.lost) note_ending();
  }

 private:
  [[nodiscard]] IterationLine& line(std::ptrdiff_t i) {
    return iterations_[static_cast<std::size_t>(i)].line;
  }

  /// Whether a counter, a line of overflow or a falling scale says that the step was skipped.
  [[nodiscard]] bool is_explained(std::ptrdiff_t i) {
    const IterationLine& bad = line(i);
    if (bad.skipped.value_or(0) > 0 || !iterations_[static_cast<std::size_t>(i)].overflows.empty())
      return true;
    if (bad.bad_scale == 0.0) return true;
    if (i > 0 && falls(line(i - 1), bad)) return true;
    // Behind a line for several steps its own may be the one that lowered the scale of the next line.
    const bool is_next = i + 1 < std::ssize(iterations_) && line(i + 1).iteration > bad.iteration + 1;
    return is_next && falls(bad, line(i + 1));
  }

  /// Whether a line may be not finite for a step that another line tells of: a mean over more steps than a
  /// line's, behind one that is not finite either, unless one stands alone; or before a fall of the scale.
  [[nodiscard]] bool may_be_told(std::ptrdiff_t i) {
    const IterationLine& bad = line(i);
    if (bad.has_own_norm) return false;
    if (i > 0 && is_bad(line(i - 1)) && !has_single_) return true;
    return bad.has_means && i + 1 < std::ssize(iterations_) && falls(bad, line(i + 1));
  }

  /// Whether the lines of a step and of the next tell its scale and the one behind it: no fall is hidden.
  [[nodiscard]] bool shows_fall(std::ptrdiff_t i) {
    if (i + 1 >= std::ssize(iterations_)) return false;
    const IterationLine &bad = line(i), &next = line(i + 1);
    return bad.has_means && bad.scale && next.scale && next.iteration == bad.iteration + 1;
  }

  /// A later line is finite: the step was skipped.
  void disprove(std::ptrdiff_t i) {
    IterationLine& bad = line(i);
    const bool again = may_be_told(i);
    log_.again += again && !shows_fall(i) ? 1 : 0;
    bad.is_disproved = true;
    bad.overflowed = bad.overflowed || !again;
    if (!log_.disproved)
      log_.disproved = DisprovedLosses{.lines = {bad.line, bad.line}, .has_means = bad.has_means};
    ++log_.disproved->count;
    log_.disproved->lines.last = bad.line;
    log_.disproved->disproof = line(alive_).line;
    log_.disproved->by_loss = !has_good_norm(line(alive_));
  }

  /// The log ends with steps that are not finite, of which the scaler skipped each.
  void note_ending() {
    std::ptrdiff_t first = std::ssize(iterations_) - 1;
    while (first > 0 && is_bad(line(first - 1))) --first;
    log_.bad_from = line(first).iteration;
    log_.bad_at = iterations_.back().line.scale;
  }

  void lose(std::ptrdiff_t i) {
    IterationLine& bad = line(i);
    bad.is_lost = true;
    if (!log_.lost) {
      log_.lost = LostWeights{.latest = bad.iteration, .lines = {bad.line, bad.line}, .is_counted = true};
      log_.lost->by_loss = true;
      first_lost_ = i;
    }
    log_.lost->lines.last = bad.line;
    log_.lost->is_counted = log_.lost->is_counted && bad.skipped == 0;
    log_.lost->by_loss = log_.lost->by_loss && !has_bad_norm(bad) && bad.not_finite == 0;
    log_.lost->is_filtered = log_.lost->is_filtered || is_filtered_out(bad);
  }

  /// The step of the last finite norm was finite; the last finite loss may be that of a window's beginning.
  void bound_lost() {
    LostWeights& lost = *log_.lost;
    if (first_lost_ == 0) {
      lost.earliest = std::min<std::int64_t>(lost.latest, 1);
      return;
    }
    const IterationLine& before = line(first_lost_ - 1);
    lost.earliest = std::min(before.iteration + 1, lost.latest);
    if (!lost.is_filtered || has_good_norm(before) || first_lost_ < 2) return;
    const IterationLine& whole = line(first_lost_ - 2);
    lost.earliest = std::min(whole.iteration + 2, lost.latest);
    lost.latest = before.iteration + 1;
    const auto steps = static_cast<double>(before.iteration - whole.iteration);
    const double share = before.loss.value_or(0) / whole.loss.value_or(0);
    // k good ones of n steps show the share k (n + 1) / (n (k + 1)).
    const double good = std::round(share * steps / (steps + 1 - share * steps));
    if (good >= 1 && good < steps && share < 0.98)
      lost.by_share = whole.iteration + static_cast<std::int64_t>(good) + 1;
  }

  std::vector<CountedIterations>& iterations_;
  SkipLog& log_;
  std::ptrdiff_t alive_ = -1;  ///< the last line that shows life
  std::ptrdiff_t first_lost_ = 0;
  bool has_single_ = false;  ///< a line that is not finite, between two that are
};

}  // namespace

void settle_losses(std::vector<CountedIterations>& iterations, SkipLog& log) {
  Evidence(iterations, log).settle();
}

}  // namespace halfscope
