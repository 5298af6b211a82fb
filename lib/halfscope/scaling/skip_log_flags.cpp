// Lines that say whether their step overflowed: their scale is that of the step, or the one behind it.
#include <cmath>
#include <cstddef>
#include <optional>

#include <halfscope/scaling/detail/log_text.hpp>
#include <halfscope/scaling/detail/skip_log_reader.hpp>

namespace halfscope {
namespace {

/// Whether nothing but norm and loss, which are this step's own, tells whether it was skipped.
bool is_untold(const CountedIterations& counted) {
  const IterationLine& line = counted.line;
  return !(line.has_means || line.skipped || line.tells_overflow || !counted.overflows.empty());
}

std::optional<double> own_norm(const CountedIterations& counted) {
  return is_untold(counted) ? counted.line.grad_norm : std::nullopt;
}

/// That norm, and where there is none the loss: infinite or NaN where the step overflowed.
std::optional<double> own_sign(const CountedIterations& counted) {
  const IterationLine& line = counted.line;
  if (!is_untold(counted)) return std::nullopt;
  return line.grad_norm || line.is_filtered ? line.grad_norm : line.loss;
}

/// Whether the scale falls from the line before to that of the next step.
bool falls_at(const std::vector<CountedIterations>& iterations, std::size_t i) {
  if (i == 0 || i >= iterations.size() || iterations[i].gap != LogGap::none) return false;
  const IterationLine &last = iterations[i - 1].line, &line = iterations[i].line;
  return line.iteration == last.iteration + 1 && last.scale && line.scale && *line.scale < *last.scale;
}

/// Whether the scale of such a line is the one behind its step; nothing where no lines tell. Two successive
/// steps of which one overflowed tell: a scale behind the step falls from the good one to the bad one, a
/// scale of the step falls from the bad one to the good one.
std::optional<bool> has_scales_behind(const std::vector<CountedIterations>& iterations) {
  std::int64_t behind = 0, before = 0;
  for (std::size_t i = 1; i < iterations.size(); ++i) {
    const IterationLine &last = iterations[i - 1].line, &line = iterations[i].line;
    if (line.iteration != last.iteration + 1 || !last.scale || !line.scale) continue;
    if (line.overflowed == last.overflowed) continue;
    const bool falls = *line.scale < *last.scale, stays = *line.scale == *last.scale;
    if (line.overflowed ? falls : stays) ++behind;
    if (line.overflowed ? stays : falls) ++before;
  }
  return behind == before ? std::nullopt : std::optional(behind > before);
}

/// Whether norms or losses say that each line has the scale of its step: it falls behind infinite ones.
bool has_scales_of_steps(const std::vector<CountedIterations>& iterations) {
  std::int64_t behind = 0, before = 0;
  for (std::size_t i = 1; i < iterations.size(); ++i) {
    const auto last = own_sign(iterations[i - 1]), sign = own_sign(iterations[i]);
    if (!last || !sign || !falls_at(iterations, i)) continue;
    behind += std::isfinite(*last) && !std::isfinite(*sign) ? 1 : 0;
    before += !std::isfinite(*last) && std::isfinite(*sign) ? 1 : 0;
  }
  return before > behind;
}

OverflowLine overflow_of(const IterationLine& line, double scale, std::optional<double> next) {
  return {.scale = scale,
          .next = next,
          .has_rank = true,
          .format = line.format,
          .line = line.line,
          .is_of_state = true};
}

/// Overflows of lines whose norm or loss is not finite, and behind which the scale falls.
void place_norms(std::vector<CountedIterations>& iterations) {
  if (!has_scales_of_steps(iterations)) return;
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    const auto sign = own_sign(iterations[i]);
    const IterationLine& line = iterations[i].line;
    const bool is_last = i + 1 == iterations.size() && line.scale && is_scale(*line.scale / 2);
    if (!sign || std::isfinite(*sign) || !(is_last || falls_at(iterations, i + 1))) continue;
    const double next = is_last ? *line.scale / 2 : *iterations[i + 1].line.scale;
    iterations[i].overflows.push_back(overflow_of(line, *line.scale, next));
  }
  for (CountedIterations& counted : iterations)
    if (!counted.overflows.empty()) counted.line.scale.reset();
}

}  // namespace

void leave_clipped_norms(std::vector<CountedIterations>& iterations) {
  const auto is_finite = [&](std::size_t i) {
    return std::isfinite(own_norm(iterations[i]).value_or(HUGE_VAL));
  };
  bool has_fall = false;
  for (std::size_t i = 1; i < iterations.size(); ++i)
    has_fall = has_fall || (falls_at(iterations, i) && is_finite(i - 1) && is_finite(i));
  if (!has_fall) return;
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    if (!is_finite(i)) continue;
    iterations[i].line.grad_norm.reset();
    iterations[i].line.has_finite_norm = true;
  }
}

void place_flags(std::vector<CountedIterations>& iterations) {
  place_norms(iterations);
  for (CountedIterations& counted : iterations) {
    const IterationLine& line = counted.line;
    if (line.scale && line.scale_before && *line.scale < *line.scale_before)
      counted.overflows.push_back(overflow_of(line, *line.scale_before, line.scale));
  }
  const std::optional<bool> is_behind = has_scales_behind(iterations);
  if (is_behind.value_or(false)) return;
  for (CountedIterations& counted : iterations) {
    IterationLine& line = counted.line;
    if (!line.overflowed || !line.scale || line.scale_before) continue;
    const bool is_of_step = is_behind.has_value() || line.has_step_scale;
    if (is_of_step && !is_scale(*line.scale / 2)) continue;
    if (is_of_step) counted.overflows.push_back(overflow_of(line, *line.scale, *line.scale / 2));
    line.scale.reset();  // the lines before and behind bound it
  }
}

}  // namespace halfscope
