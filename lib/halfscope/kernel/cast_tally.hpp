// Counts what a cast did to the floats of an array, by comparing them before and after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <halfscope/format/float_format.hpp>
#include <halfscope/kernel/isa.hpp>

namespace halfscope {

/// Elements by what they were and what the cast made of them.
struct CastTally {
  std::int64_t zeros = 0;      ///< were zero, of either sign
  std::int64_t nonfinite = 0;  ///< were infinite or NaN
  std::int64_t flushed = 0;    ///< were not zero and are now
  std::int64_t subnormal = 0;  ///< are subnormal now
  std::int64_t overflow = 0;   ///< were finite and are not any more
  float max_abs = 0;           ///< of the ones that were finite

  friend constexpr bool operator==(const CastTally&, const CastTally&) = default;
};

/// `tally_cast` compiled for one instruction set; `min_normal` is the bit pattern of the format's smallest
/// normal number.
template <Isa isa>
void tally_cast_isa(const float* before, const float* after, std::size_t count, std::uint32_t min_normal,
                    CastTally& tally);
template <>
void tally_cast_isa<Isa::baseline>(const float*, const float*, std::size_t, std::uint32_t, CastTally&);
template <>
void tally_cast_isa<Isa::avx2>(const float*, const float*, std::size_t, std::uint32_t, CastTally&);
template <>
void tally_cast_isa<Isa::avx512>(const float*, const float*, std::size_t, std::uint32_t, CastTally&);

/// Adds to `tally` what a cast to `format` made of `before`, on one thread. Both arrays have one size.
inline void tally_cast(std::span<const float> before, std::span<const float> after, const FloatFormat& format,
                       CastTally& tally) {
  const std::uint32_t min_normal = static_cast<std::uint32_t>(format.min_exponent() + 127) << 23;
  dispatch_isa(
      [&]<Isa isa>() { tally_cast_isa<isa>(before.data(), after.data(), before.size(), min_normal, tally); });
}

}  // namespace halfscope
