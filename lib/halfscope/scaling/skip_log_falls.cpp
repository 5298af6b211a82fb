// Skipped steps of a scale that fell between two lines of a log.
#include <algorithm>
#include <cmath>

#include <halfscope/scaling/detail/skip_log_windows.hpp>

namespace halfscope {

std::int64_t halvings_between(double before, double after) {
  constexpr double rounding = 0.05;
  if (after >= before) return 0;
  return std::max<std::int64_t>(1,
                                static_cast<std::int64_t>(std::ceil(std::log2(before / after) - rounding)));
}

std::vector<SkippedAt> falling_scales(double before, double after, std::int64_t count) {
  const double halvings = std::log2(before / after);
  const bool falls =
      halvings == std::floor(halvings) && halvings >= 0 && halvings <= static_cast<double>(count);
  std::vector<SkippedAt> skips(static_cast<std::size_t>(count), {before});
  const std::size_t lowered = falls ? static_cast<std::size_t>(halvings) : 0;
  for (std::size_t i = skips.size() - lowered + 1; i < skips.size(); ++i)
    skips[i].scale = skips[i - 1].scale / 2;
  for (std::size_t i = 0; i < skips.size(); ++i)
    skips[i].high = std::max(skips[i].scale, std::ldexp(after, static_cast<int>(skips.size() - i)));
  return skips;
}

}  // namespace halfscope
