// The loop of the cast counters, compiled once per instruction set.
#include <halfscope/kernel/cast/detail/cast_counters_simd.hpp>

#include <halfscope/format/bits.hpp>

// Nothing here may be emitted out of line under a name that other translation units share: everything is in
// an unnamed namespace or always inlined.
namespace halfscope {
namespace {

/// Elements per pass: few enough to be read again from the innermost cache where that is needed.
constexpr std::size_t tile = 1024;

/// 1 where a magnitude is below `limit`; a borrow instead of a comparison, whose mask takes a detour.
HALFSCOPE_HD std::uint32_t is_below(std::uint32_t magnitude, std::uint32_t limit) {
  return (magnitude - limit) >> 31;
}

std::uint32_t count_below(const float* values, std::size_t count, std::uint32_t limit) {
  std::uint32_t below = 0;
#pragma omp simd reduction(+ : below)
  for (std::size_t i = 0; i < count; ++i) below += is_below(to_bits(values[i]) & ~sign_bit, limit);
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
    const std::uint32_t magnitude = to_bits(values[i]) & ~sign_bit;
    const auto number = static_cast<std::int32_t>(magnitude);
    below_normal += is_below(magnitude, normal);
    largest = largest > number ? largest : number;
  }
  if (largest >= static_cast<std::int32_t>(limits.infinite)) return false;
  const float max_abs = from_bits(static_cast<std::uint32_t>(largest));
  counters.max_abs = counters.max_abs > max_abs ? counters.max_abs : max_abs;
  if (below_normal == 0) return true;
  const std::uint32_t zeros = count_below(values, count, 1);
  const std::uint32_t flushed_or_zero =
      zeros == below_normal ? zeros : count_below(values, count, limits.nonzero);
  counters.zeros += zeros;
  counters.flushed += flushed_or_zero - zeros;
  counters.subnormal += below_normal - flushed_or_zero;
  return true;
}

void count_tile(const float* values, std::size_t count, const CastLimits& limits, CastCounters& counters) {
  constexpr auto infinity = static_cast<std::int32_t>(infinity_bits);
  const auto nonzero = static_cast<std::int32_t>(limits.nonzero);
  const auto normal = static_cast<std::int32_t>(limits.normal);
  const auto infinite = static_cast<std::int32_t>(limits.infinite);
  std::int32_t zeros = 0, below_nonzero = 0, below_normal = 0, beyond = 0, nonfinite = 0, max_finite = 0;
#pragma omp simd reduction(+ : zeros, below_nonzero, below_normal, beyond, nonfinite) \
    reduction(max : max_finite)
  for (std::size_t i = 0; i < count; ++i) {
    const auto magnitude = static_cast<std::int32_t>(to_bits(values[i]) & ~sign_bit);
    zeros += magnitude == 0 ? 1 : 0;
    below_nonzero += magnitude < nonzero ? 1 : 0;
    below_normal += magnitude < normal ? 1 : 0;
    beyond += magnitude >= infinite ? 1 : 0;
    nonfinite += magnitude >= infinity ? 1 : 0;
    const std::int32_t finite = magnitude < infinity ? magnitude : 0;
    max_finite = max_finite > finite ? max_finite : finite;
  }
  counters.zeros += zeros;
  counters.flushed += below_nonzero - zeros;
  counters.subnormal += below_normal - below_nonzero;
  counters.overflow += beyond - nonfinite;
  counters.nonfinite += nonfinite;
  const float max_abs = from_bits(static_cast<std::uint32_t>(max_finite));
  counters.max_abs = counters.max_abs > max_abs ? counters.max_abs : max_abs;
}

}  // namespace

template <>
void count_cast_isa<target_isa>(const float* values, std::size_t count, const CastLimits& limits,
                                CastCounters& counters) {
  for (std::size_t start = 0; start < count; start += tile) {
    const std::size_t here = count - start < tile ? count - start : tile;
    if (!count_finite(values + start, here, limits, counters))
      count_tile(values + start, here, limits, counters);
  }
}

}  // namespace halfscope
