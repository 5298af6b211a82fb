// Puts lines of state and lines of overflow together: what either of them tells is not forgotten.
#include <algorithm>
#include <cmath>
#include <map>

#include <halfscope/scaling/detail/skip_log_reader.hpp>
#include <halfscope/scaling/detail/skip_log_windows.hpp>
#include <halfscope/scaling/scaler_options.hpp>

namespace halfscope {
namespace {

/// The steps between two lines, as most pairs of them have it; the smaller of two that are as many.
std::int64_t usual_interval(const std::vector<CountedIterations>& iterations) {
  std::map<std::int64_t, std::int64_t> counts;
  for (std::size_t i = 1; i < iterations.size(); ++i)
    ++counts[iterations[i].line.iteration - iterations[i - 1].line.iteration];
  const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  return most == counts.end() ? 0 : most->first;
}

/// Whether any line tells of a scaler: a scale other than 1, or a step that it skipped.
bool tells_of_scaler(const std::vector<CountedIterations>& iterations) {
  const bool has_scale = std::ranges::any_of(
      iterations, [](const CountedIterations& counted) { return counted.line.scale.has_value(); });
  return std::ranges::any_of(iterations, [&](const CountedIterations& counted) {
    const IterationLine& line = counted.line;
    return !counted.overflows.empty() || line.scale.value_or(1) != 1 || (line.bad_scale && has_scale) ||
           line.has_scaler || line.skipped.value_or(0) > 0;
  });
}

/// Lines of their own, one for each overflow.
bool has_overflow_lines(const std::vector<CountedIterations>& iterations) {
  return std::ranges::any_of(iterations, [](const CountedIterations& counted) {
    return std::ranges::any_of(counted.overflows,
                               [](const OverflowLine& overflow) { return !overflow.is_of_state; });
  });
}

class IterationLog {
 public:
  IterationLog(const std::vector<CountedIterations>& iterations, SkipLog& log)
      : log_(log),
        interval_(usual_interval(iterations)),
        has_lines_(has_overflow_lines(iterations)),
        prints_changes_(std::ranges::any_of(iterations, [](const CountedIterations& counted) {
          return counted.line.scale_before.has_value();
        })) {
    const CountedIterations& first = iterations.front();
    const std::int64_t told = std::max<std::int64_t>(
        {1, first.line.skipped.value_or(0), std::ssize(first.overflows) - first.uncounted()});
    begin_ = std::max<std::int64_t>(0, first.line.iteration - (interval_ > 0 ? interval_ : told));
    // Steps that are counted from 0 on: none bounds what the first of them was.
    const bool may_be_update = first.line.iteration == 0 && !first.line.skipped && !has_lines_;
    if (may_be_update) {
      ++log_.unseen_steps;
      log_.counts_skips = false;
    }
  }

  void add(const CountedIterations& counted) {
    const IterationLine& line = counted.line;
    const LogWindow window = window_before(counted);
    const std::int64_t skipped = log_.skipped;
    const double before = known_;
    const bool is_new = is_seam(counted);
    if (window.after_hole || is_new) known_ = 0;
    if (known_ == 0 && window.size() == 1) known_ = line.scale_before.value_or(0);
    if (is_new && !log_.seam_line) log_.seam_line = line.line;
    if (is_open(counted, window)) {
      add_open(line, window);
    } else {
      add_whole(counted, window);
    }
    if (window.after_hole) add_hole(window.first - begin_, line, {before, log_.skipped - skipped});
    log_.next_scale = known_ > 0 ? std::optional(known_) : std::nullopt;
    begin_ = window.last;
    skipped_ += counted.uncounted();
    // Before the first iteration there is no step that a run could end with.
    if (!counted.overflows.empty() && counted.overflows.back().ends && !log_.steps.empty()) {
      log_.ended = log_.steps.back().step;
      log_.next_scale.reset();
    }
  }

  /// Steps from one line to the next.
  [[nodiscard]] std::int64_t interval() const { return std::max<std::int64_t>(1, interval_); }

 private:
  /// The scale before a hole, 0 where it is unknown, and the skipped steps of the line behind it.
  struct AroundHole {
    double scale;
    std::int64_t skipped;
  };

  /// Whether the scale of a restart is another than the one before its checkpoint, by more than its own skips
  /// explain: a scaler may begin anew, or with another scale.
  [[nodiscard]] bool is_seam(const CountedIterations& counted) const {
    const IterationLine& line = counted.line;
    if (counted.gap != LogGap::seam || known_ == 0 || !line.scale) return false;
    const std::int64_t told = std::max<std::int64_t>(std::ssize(counted.overflows), line.skipped.value_or(0));
    return *line.scale > known_ || halvings_between(known_, *line.scale) > told;
  }

  /// A fall of the scale that the line's own skips do not explain took place in the hole, at one step or more
  /// of it: a scaler may lower its scale by more than half.
  void add_hole(std::int64_t steps, const IterationLine& line, const AroundHole& around) {
    log_.unknown_steps += steps;
    if (around.scale == 0 || !line.scale) return;
    const std::int64_t fallen = halvings_between(around.scale, *line.scale) - around.skipped;
    log_.skipped_in_holes += std::clamp<std::int64_t>(fallen, 0, steps);
  }

  /// The steps that the line counts; a gap longer than usual is a hole.
  [[nodiscard]] LogWindow window_before(const CountedIterations& counted) const {
    const std::int64_t last = counted.line.iteration + skipped_ + counted.uncounted(),
                       usual = interval_ + counted.uncounted();
    const bool hole = interval_ > 0 && last - begin_ > usual;
    return {hole ? last - usual : begin_, last, hole && !log_.steps.empty(), counted.line.line};
  }

  /// Whether overflows of the window may be missing, or belong elsewhere: lines that were cut out, or an
  /// attempt that broke off, had some.
  [[nodiscard]] bool is_open(const CountedIterations& counted, const LogWindow& window) const {
    if (window.size() == 0) return false;
    const bool lines = !counted.overflows.empty();
    if (counted.gap == LogGap::restart) return true;
    const bool is_counted = counted.line.skipped.value_or(0) > 0 || (counted.line.skipped && !has_lines_);
    return window.after_hole && !is_counted && (lines || window.size() > 1);
  }

  /// The last step alone, at whatever scale: without a norm it may have been skipped too.
  void add_open(const IterationLine& line, const LogWindow& window) {
    log_.unknown_steps += window.size() - 1;
    LoggedStep last{.scale = line.scale.value_or(1), .grad_norm = line.grad_norm, .low = 0};
    if (has_no_norm(line)) last.grad_norm.reset();
    last.lost = line.is_lost;
    log_.unseen_steps += last.grad_norm || last.lost ? 0 : 1;
    add_window({window.last - 1, window.last, true, window.line}, {}, last, log_);
    known_ = line.scale.value_or(0);
  }

  void add_whole(const CountedIterations& counted, const LogWindow& window) {
    const IterationLine& line = counted.line;
    const double printed = line.scale.value_or(0);
    const double after = printed > 0                  ? printed
                         : !counted.overflows.empty() ? scale_after(counted.overflows)
                                                      : known_;
    const std::vector<SkippedAt> skips = skips_of(counted, window, after);
    const double before = !skips.empty() ? skips.front().scale : known_ > 0 ? known_ : after;
    LoggedStep finite{.scale = window.size() == 1 ? before : std::min(before, after),
                      .grad_norm = line.grad_norm,
                      .low = lowest(counted, window, skips, after)};
    if (finite.scale == 0) finite.scale = shown_;
    finite.low = std::min(finite.low, finite.scale);
    if (has_no_norm(line)) finite.grad_norm.reset();
    finite.lost = skips.empty() && line.is_lost;
    if (line.has_means) finite.grad_norm.reset();  // bounds its window's sum alone
    leave_open(counted, window, skips, finite);
    add_window(window, skips, finite, log_);
    const bool fell_unseen = printed == 0 && !skips.empty() && counted.overflows.empty();
    known_ = fell_unseen ? 0 : after;
    if (known_ > 0) shown_ = known_;
  }

  /// Without a counter the steps of a line that stands for several may have been skipped: the scale may have
  /// grown and fallen again between two lines. At a scale of 1 it may be at its floor.
  void leave_open(const CountedIterations& counted, const LogWindow& window,
                  const std::vector<SkippedAt>& skips, LoggedStep& finite) {
    const IterationLine& line = counted.line;
    const std::int64_t others = window.size() - std::ssize(skips);
    log_.interval = std::max(log_.interval, window.size());
    if (line.scale) {
      if (last_scale_ >= 0) log_.interval = std::max(log_.interval, window.last - last_scale_);
      last_scale_ = window.last;
    }
    if (!(log_.has_scaler || log_.disproved) || others == 0) return;
    if (line.skipped || has_lines_) return;
    log_.counts_skips = false;
    const bool has_norm = finite.grad_norm.has_value();
    const bool is_of_all = line.has_own_norm || window.size() == 1;
    if (line.has_means && has_finite_norm(line) && is_of_all) return;
    const bool is_told = has_norm || finite.lost || (line.has_means && has_finite_norm(line));
    if (window.size() == 1 && known_ == 0 && !is_told) {
      ++log_.unseen_steps;
      finite.low = 0;
      return;
    }
    if (line.bad_scale) {  // one that is rounded to 0 goes on falling
      log_.unseen_steps += others;
      finite.low = 0;
      return;
    }
    const bool tells_scale = line.scale || line.tells_overflow || prints_changes_;
    if (window.size() == 1 && ((finite.scale > 1 && tells_scale) || has_norm)) return;
    log_.open_steps += others - (is_told ? 1 : 0);
    finite.low = 0;
  }

  static bool has_finite_norm(const IterationLine& line) {
    return line.grad_norm && std::isfinite(*line.grad_norm);
  }
  static bool has_no_norm(const IterationLine& line) { return line.grad_norm && std::isnan(*line.grad_norm); }

  /// The smallest scale of the steps that were not skipped; 0 where nothing bounds it. A scale grows once
  /// between two lines at most.
  [[nodiscard]] double lowest(const CountedIterations& counted, const LogWindow& window,
                              const std::vector<SkippedAt>& skips, double after) const {
    if (window.size() == 1 && known_ > 0) return known_;
    const std::int64_t count = std::ssize(skips);
    if (std::ssize(counted.overflows) >= count && count > 0) {
      double low = std::min(known_ > 0 ? known_ : counted.overflows.front().scale / 2, after);
      for (const OverflowLine& overflow : counted.overflows)
        low = std::min(low, overflow.next.value_or(overflow.scale));
      return low;
    }
    if (known_ == 0) return after / 2;
    if (count == halvings_between(known_, after)) return std::min(known_, after);
    return std::ldexp(known_, -static_cast<int>(count));
  }

  /// The steps that overflow lines, the counter or the fall of the scale tell of.
  std::vector<SkippedAt> skips_of(const CountedIterations& counted, const LogWindow& window, double after) {
    const std::int64_t lines = std::ssize(counted.overflows), said = counted.line.skipped.value_or(0),
                       fallen = known_ > 0 ? halvings_between(known_, after) : 0,
                       own = counted.line.overflowed ? 1 : 0;
    const std::int64_t count = std::min(std::max({lines, said, fallen, own}), window.size());
    if (counted.line.skipped) log_.uncounted += std::max<std::int64_t>(0, count - said);
    if (count == 0) return {};
    std::vector<SkippedAt> skips = scales_of_skips(counted, window, after, count);
    skips.back().hidden = std::max<std::int64_t>(0, fallen - count);
    return skips;
  }

  std::vector<SkippedAt> scales_of_skips(const CountedIterations& counted, const LogWindow& window,
                                         double after, std::int64_t count) {
    const std::int64_t lines = std::ssize(counted.overflows);
    std::vector<SkippedAt> skips;
    if (lines >= count) {
      for (const OverflowLine& overflow : counted.overflows)
        skips.push_back({.scale = overflow.scale, .line = overflow.line});
      return {skips.end() - count, skips.end()};
    }
    const bool one = window.size() == 1, all_lower = std::ldexp(after, static_cast<int>(count)) == known_;
    if (known_ == 0 || (!one && !all_lower)) log_.unsure_scales += count;
    if (one && known_ > 0) return {{known_}};
    if (!counted.line.scale && lines == 0)
      return std::vector<SkippedAt>(static_cast<std::size_t>(count), unknown_scale());
    // By default Megatron-LM forgives the first overflow.
    const auto halvings = static_cast<int>(std::max<std::int64_t>(0, count - 1));
    return falling_scales(known_ > 0 ? known_ : std::min(std::ldexp(after, halvings), largest_scale), after,
                          count);
  }

  [[nodiscard]] SkippedAt unknown_scale() const { return {known_ > 0 ? known_ : shown_, HUGE_VAL}; }

  SkipLog& log_;
  std::int64_t interval_ = 0, begin_ = 0;
  std::int64_t skipped_ = 0;      ///< that the count of the lines leaves out
  std::int64_t last_scale_ = -1;  ///< the last step whose line tells a scale
  bool has_lines_ = false;        ///< lines of overflows, between any two
  bool prints_changes_ = false;   ///< a line has a change, "65536 -> 32768"
  double known_ = 0;              ///< the scale before the line; 0: unknown
  double shown_ = 1;              ///< the last that was known, which stands for one that is not
};

void note_lines(const std::vector<CountedIterations>& iterations, SkipLog& log) {
  for (const CountedIterations& counted : iterations) {
    const IterationLine& line = counted.line;
    log.numbers_steps = log.numbers_steps && line.is_numbered;
    if (line.bad_scale && !log.bad_scale_line) {
      log.bad_scale_line = line.line;
      log.bad_scale = *line.bad_scale;
    }
  }
}

}  // namespace

SkipLog log_of_iterations(std::vector<CountedIterations> iterations, const std::vector<OverflowLine>& rest) {
  SkipLog log;
  leave_uneven_scales(iterations, log);
  leave_clipped_norms(iterations);
  place_flags(iterations);
  settle_losses(iterations, log);
  const bool overflows = has_overflow_lines(iterations);
  log.format = iterations.front().line.format;
  if (log.format == "megatron" && (overflows || !rest.empty())) log.format = "megatron_deepspeed";
  log.has_scaler = tells_of_scaler(iterations) || !rest.empty();
  IterationLog steps(iterations, log);
  for (const CountedIterations& counted : iterations) steps.add(counted);
  if (!log.counts_skips && !log.steps.empty() && rest.empty())
    log.most_by_rule = most_by_rule(iterations, log);
  note_lines(iterations, log);
  if (rest.empty()) return log;
  log.restart = possible_restart(log, {log.next_scale.value_or(0), steps.interval()}, rest);
  std::vector<SkippedAt> scales;
  for (const OverflowLine& overflow : rest)
    scales.push_back({.scale = overflow.scale, .line = overflow.line});
  const std::int64_t last = log.steps.empty() ? iterations.back().line.iteration : log.steps.back().step;
  add_window({last, last + std::ssize(rest)}, scales, {}, log);
  log.unsure_steps += std::ssize(rest);
  if (rest.back().ends) {
    log.ended = log.steps.back().step;
    log.next_scale.reset();
  } else {
    log.next_scale = scale_after(rest);
  }
  return log;
}

}  // namespace halfscope
