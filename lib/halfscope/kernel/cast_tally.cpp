// The loop of the cast tally, compiled once per instruction set.
#include <halfscope/kernel/cast_tally.hpp>

#include <halfscope/format/bits.hpp>

// Nothing here may be emitted out of line under a name that other translation units share: everything is in
// an unnamed namespace or always inlined.
namespace halfscope {
namespace {

/// Elements per pass: few enough for counters of 32 bits.
constexpr std::size_t tile = std::size_t{1} << 20;

/// Signed arithmetic, since SSE2 and AVX2 compare signed integers only.
void tally_tile(const float* before, const float* after, std::size_t count, std::int32_t min_normal,
                CastTally& tally) {
  constexpr auto infinity = static_cast<std::int32_t>(infinity_bits);
  std::int32_t zeros = 0, nonfinite = 0, now_zero = 0, subnormal = 0, overflow = 0, max_finite = 0;
#pragma omp simd reduction(+ : zeros, nonfinite, now_zero, subnormal, overflow) reduction(max : max_finite)
  for (std::size_t i = 0; i < count; ++i) {
    const auto exact = static_cast<std::int32_t>(to_bits(before[i]) & ~sign_bit);
    const auto rounded = static_cast<std::int32_t>(to_bits(after[i]) & ~sign_bit);
    zeros += exact == 0 ? 1 : 0;
    nonfinite += exact >= infinity ? 1 : 0;
    now_zero += rounded == 0 ? 1 : 0;
    subnormal += rounded < min_normal ? 1 : 0;  // zeros too, until they are taken off below
    overflow += (exact < infinity ? 1 : 0) & (rounded >= infinity ? 1 : 0);
    const std::int32_t finite = exact < infinity ? exact : 0;
    max_finite = max_finite > finite ? max_finite : finite;
  }
  // A zero stays zero in every format.
  tally.zeros += zeros;
  tally.nonfinite += nonfinite;
  tally.flushed += now_zero - zeros;
  tally.subnormal += subnormal - now_zero;
  tally.overflow += overflow;
  const float max_abs = from_bits(static_cast<std::uint32_t>(max_finite));
  tally.max_abs = tally.max_abs > max_abs ? tally.max_abs : max_abs;
}

}  // namespace

template <>
void tally_cast_isa<target_isa>(const float* before, const float* after, std::size_t count,
                                std::uint32_t min_normal, CastTally& tally) {
  for (std::size_t start = 0; start < count; start += tile) {
    const std::size_t here = count - start < tile ? count - start : tile;
    tally_tile(before + start, after + start, here, static_cast<std::int32_t>(min_normal), tally);
  }
}

}  // namespace halfscope
