// Puts lines of state and lines of overflow together: what either of them tells is not forgotten.
#include <algorithm>
#include <cmath>
#include <map>

#include <halfscope/scaling/detail/skip_log_reader.hpp>
#include <halfscope/scaling/detail/skip_log_windows.hpp>
#include <halfscope/scaling/scaler_options.hpp>

namespace halfscope {
namespace {

/// Overflows that a fall of the scale takes: each halves it at most.
std::int64_t halvings_between(double before, double after) {
  return after < before ? static_cast<std::int64_t>(std::ceil(std::log2(before / after))) : 0;
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
  return std::ranges::any_of(iterations, [](const CountedIterations& counted) {
    return !counted.overflows.empty() || counted.line.scale.value_or(1) != 1 ||
           counted.line.skipped.value_or(0) > 0;
  });
}

class IterationLog {
 public:
  IterationLog(const std::vector<CountedIterations>& iterations, SkipLog& log)
      : log_(log), interval_(usual_interval(iterations)) {
    const IterationLine& first = iterations.front().line;
    const std::int64_t told =
        std::max<std::int64_t>({1, first.skipped.value_or(0), std::ssize(iterations.front().overflows)});
    begin_ = std::max<std::int64_t>(0, first.iteration - (interval_ > 0 ? interval_ : told));
  }

  void add(const CountedIterations& counted) {
    const IterationLine& line = counted.line;
    const LogWindow window = window_before(line.iteration);
    if (window.after_hole) {
      log_.unknown_steps += window.first - begin_;
      if (known_ > 0 && line.scale) log_.skipped_in_holes += halvings_between(known_, *line.scale);
      known_ = 0;
    }
    begin_ = line.iteration;
    const double after = line.scale.value_or(known_ > 0 ? known_ : 1);
    const std::vector<double> scales = skipped_scales(counted, window, after);
    const double before = !scales.empty() ? scales.front() : known_ > 0 ? known_ : after;
    const bool one = window.size() == 1;
    LoggedStep finite{.scale = one ? before : std::min(before, after), .grad_norm = line.grad_norm};
    const bool norm_is_none = line.grad_norm && std::isnan(*line.grad_norm);
    if (norm_is_none) finite.grad_norm.reset();
    finite.lost = scales.empty() && (norm_is_none || line.not_finite > 0);
    add_window(window, scales, finite, log_);
    if (line.scale) known_ = *line.scale;
    // Before the first iteration there is no step that a run could end with.
    if (!counted.overflows.empty() && counted.overflows.back().ends && !log_.steps.empty())
      log_.ended = log_.steps.back().step;
  }

 private:
  /// The steps that the line counts; a gap longer than usual is a hole.
  [[nodiscard]] LogWindow window_before(std::int64_t iteration) const {
    const bool hole = interval_ > 0 && iteration - begin_ > interval_;
    return {hole ? iteration - interval_ : begin_, iteration, hole && !log_.steps.empty()};
  }

  /// The scales of the steps that overflow lines, the counter or the fall of the scale tell of.
  std::vector<double> skipped_scales(const CountedIterations& counted, const LogWindow& window,
                                     double after) {
    const std::int64_t lines = std::ssize(counted.overflows), said = counted.line.skipped.value_or(0),
                       fallen = known_ > 0 ? halvings_between(known_, after) : 0;
    const std::int64_t count = std::min(std::max({lines, said, fallen}), window.size());
    if (counted.line.skipped) log_.uncounted += std::max<std::int64_t>(0, count - said);
    if (count == 0) return {};
    std::vector<double> scales;
    if (lines >= count) {
      for (const OverflowLine& overflow : counted.overflows) scales.push_back(overflow.scale);
      return {scales.end() - count, scales.end()};
    }
    // By default Megatron-LM forgives the first overflow.
    const auto halvings = static_cast<int>(std::max<std::int64_t>(0, count - 1));
    const double before = known_ > 0 ? known_ : std::min(std::ldexp(after, halvings), largest_scale);
    const bool one = window.size() == 1, all_lower = std::ldexp(after, static_cast<int>(count)) == before;
    if (known_ == 0 || (!one && !all_lower)) log_.unsure_scales += count;
    return falling_scales(before, after, count);
  }

  SkipLog& log_;
  std::int64_t interval_ = 0, begin_ = 0;
  double known_ = 0;  ///< the scale before the line; 0: unknown
};

}  // namespace

SkipLog log_of_iterations(const std::vector<CountedIterations>& iterations,
                          const std::vector<OverflowLine>& rest) {
  SkipLog log;
  const bool overflows = std::ranges::any_of(
      iterations, [](const CountedIterations& counted) { return !counted.overflows.empty(); });
  log.format = iterations.front().line.format;
  if (log.format == SkipLogFormat::megatron && (overflows || !rest.empty()))
    log.format = SkipLogFormat::megatron_deepspeed;
  log.has_scaler = tells_of_scaler(iterations) || !rest.empty();
  IterationLog steps(iterations, log);
  for (const CountedIterations& counted : iterations) steps.add(counted);
  if (rest.empty()) return log;
  std::vector<double> scales;
  for (const OverflowLine& overflow : rest) scales.push_back(overflow.scale);
  const std::int64_t last = log.steps.empty() ? iterations.back().line.iteration : log.steps.back().step;
  add_window({last, last + std::ssize(rest)}, scales, {}, log);
  log.unsure_steps += std::ssize(rest);
  if (rest.back().ends) log.ended = log.steps.back().step;
  return log;
}

}  // namespace halfscope
