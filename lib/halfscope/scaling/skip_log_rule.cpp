// The skips that the rule of PyTorch's scaler allows between the lines of a log.
#include <algorithm>
#include <cmath>

#include <halfscope/scaling/detail/skip_log_reader.hpp>

namespace halfscope {

std::optional<std::int64_t> most_by_rule(const std::vector<CountedIterations>& iterations,
                                         const SkipLog& log) {
  constexpr std::int64_t interval = 2000;
  constexpr double initial_log2 = 16;
  std::optional<double> first, last;
  double grown = 0;
  std::int64_t begin = 0;
  for (const CountedIterations& counted : iterations) {
    if (!counted.line.scale) continue;
    const double log2 = std::log2(*counted.line.scale);
    if (log2 != std::floor(log2)) return std::nullopt;
    if (!first) {
      first = log2;
      begin = counted.line.iteration;
    }
    if (last) grown += std::max(0.0, log2 - *last);
    last = log2;
  }
  if (!first) return std::nullopt;
  const bool from_start = log.steps.front().step == 1 && *first <= initial_log2 && begin < interval;
  const std::int64_t steps = iterations.back().line.iteration - (from_start ? 0 : begin);
  const std::int64_t growths = from_start ? steps / interval : (steps + interval - 1) / interval;
  if (grown > static_cast<double>(growths)) return std::nullopt;
  const double most = static_cast<double>(growths) + (from_start ? initial_log2 : *first) - *last;
  const auto count = static_cast<std::int64_t>(most) + (from_start ? 0 : begin - log.steps.front().step + 1);
  return count >= log.skipped ? std::optional(count) : std::nullopt;
}

}  // namespace halfscope
