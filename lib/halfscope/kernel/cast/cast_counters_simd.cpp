// The loop of the cast counters, compiled once per instruction set.
#include <halfscope/kernel/cast/detail/cast_counters_simd.hpp>

#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/cast/detail/cast_counters_element.hpp>

// Nothing here may be emitted out of line under a name that other translation units share: everything is in
// an unnamed namespace or always inlined.
namespace halfscope {
namespace {

/// Elements per pass: few enough to be read again from the innermost cache where that is needed.
constexpr std::size_t tile = 1024;

HALFSCOPE_HD void add(const CountsByLimit& counts, std::int32_t max_finite, CastCounters& counters) {
  counters.zeros += counts.zeros;
  counters.nonfinite += counts.nonfinite;
  counters.flushed += counts.flushed();
  counters.subnormal += counts.subnormal();
  counters.overflow += counts.overflow;
  const float max_abs = from_bits(static_cast<std::uint32_t>(max_finite));
  counters.max_abs = counters.max_abs > max_abs ? counters.max_abs : max_abs;
}

/// 1 where a magnitude is below `limit`; a borrow instead of a comparison, whose mask takes a detour.
HALFSCOPE_HD std::uint32_t is_below(std::uint32_t magnitude, std::uint32_t limit) {
  return (magnitude - limit) >> 31;
}

std::uint32_t count_below(const float* values, std::size_t count, std::uint32_t limit) {
  std::uint32_t below = 0;
#pragma omp simd reduction(+ : below)
  for (std::size_t i = 0; i < count; ++i) below += is_below(magnitude_bits(values[i]), limit);
  return below;
}

/// Whether nothing overflows, which is quicker to find out than what does; only then is anything added. Most
/// tiles are of normal numbers all through, and most others of such numbers and zeros.
bool count_finite(const float* values, std::size_t count, const CastLimits& limits, CastCounters& counters) {
  const std::uint32_t normal = limits.normal;
  std::uint32_t below_normal = 0;
  std::int32_t largest = 0;
#pragma omp simd reduction(+ : below_normal) reduction(max : largest)
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t magnitude = magnitude_bits(values[i]);
    const auto number = static_cast<std::int32_t>(magnitude);
    below_normal += is_below(magnitude, normal);
    largest = largest > number ? largest : number;
  }
  if (largest >= static_cast<std::int32_t>(limits.infinite)) return false;
  CountsByLimit counts{.below_normal = below_normal};
  if (below_normal != 0) {
    counts.zeros = count_below(values, count, 1);
    counts.below_nonzero =
        counts.zeros == below_normal ? below_normal : count_below(values, count, limits.nonzero);
  }
  add(counts, largest, counters);
  return true;
}

/// By the limits of `decisive`: the values, or what they were rounded to.
void count_tile(const float* values, const float* decisive, std::size_t count, const CastLimits& limits,
                CastCounters& counters) {
  CountsByLimit counts;
  std::int32_t max_finite = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t magnitude = magnitude_bits(values[i]);
    counts.count(magnitude, magnitude_bits(decisive[i]), limits);
    const auto finite = static_cast<std::int32_t>(magnitude < infinity_bits ? magnitude : 0);
    max_finite = max_finite > finite ? max_finite : finite;
  }
  add(counts, max_finite, counters);
}

}  // namespace

template <>
void count_cast_isa<target_isa>(const float* values, const float* decisive, std::size_t count,
                                const CastLimits& limits, CastCounters& counters) {
  for (std::size_t start = 0; start < count; start += tile) {
    const std::size_t here = count - start < tile ? count - start : tile;
    const bool counted = decisive == values && count_finite(values + start, here, limits, counters);
    if (!counted) count_tile(values + start, decisive + start, here, limits, counters);
  }
}

}  // namespace halfscope
