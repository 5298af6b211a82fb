// Lines that say whether their step overflowed: their scale is that of the step, or the one behind it.
#include <optional>

#include <halfscope/scaling/detail/log_text.hpp>
#include <halfscope/scaling/detail/skip_log_reader.hpp>

namespace halfscope {
namespace {

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

}  // namespace

void place_flags(std::vector<CountedIterations>& iterations) {
  for (CountedIterations& counted : iterations) {
    const IterationLine& line = counted.line;
    if (line.scale_before && *line.scale < *line.scale_before)
      counted.overflows.push_back({.scale = *line.scale_before,
                                   .next = line.scale,
                                   .has_rank = true,
                                   .format = line.format,
                                   .line = line.line,
                                   .is_of_state = true});
  }
  const std::optional<bool> is_behind = has_scales_behind(iterations);
  if (is_behind.value_or(false)) return;
  for (CountedIterations& counted : iterations) {
    IterationLine& line = counted.line;
    if (!line.overflowed || !line.scale || line.scale_before) continue;
    const bool is_of_step = is_behind.has_value() || line.has_step_scale;
    if (is_of_step && !is_scale(*line.scale / 2)) continue;
    if (is_of_step)
      counted.overflows.push_back({.scale = *line.scale,
                                   .next = *line.scale / 2,
                                   .has_rank = true,
                                   .format = line.format,
                                   .line = line.line,
                                   .is_of_state = true});
    line.scale.reset();  // the lines before and behind bound it
  }
}

}  // namespace halfscope
