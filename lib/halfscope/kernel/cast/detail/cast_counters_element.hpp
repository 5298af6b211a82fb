// Which numbers a cast flushes, makes subnormal and overflows, for the loops on the CPU and on the device.
#pragma once

#include <cstdint>

#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/cast/cast_counters.hpp>

namespace halfscope {

/// Counts of the numbers on one side of each limit. A number below one limit is below the next too, so
/// that a class of the cast is a difference.
struct CountsByLimit {
  std::uint32_t zeros = 0;          ///< are zero
  std::uint32_t below_nonzero = 0;  ///< are or become zero
  std::uint32_t below_normal = 0;   ///< the same, or become subnormal
  std::uint32_t overflow = 0;       ///< are finite and become infinite, or NaN
  std::uint32_t nonfinite = 0;      ///< are infinite or NaN

  /// Counts the number of `magnitude`. The limits are those of `decisive`: of the same magnitude, or of the
  /// one that was rounded, with `limits_of_rounded`.
  HALFSCOPE_HD void count(std::uint32_t magnitude, std::uint32_t decisive, const CastLimits& limits) {
    const std::uint32_t finite = is_below(magnitude, infinity_bits);
    zeros += is_below(magnitude, 1);
    below_nonzero += is_below(decisive, limits.nonzero);
    below_normal += is_below(decisive, limits.normal);
    overflow += finite & ~is_below(decisive, limits.infinite);
    nonfinite += 1u - finite;
  }
  [[nodiscard]] HALFSCOPE_HD std::uint32_t flushed() const { return below_nonzero - zeros; }
  [[nodiscard]] HALFSCOPE_HD std::uint32_t subnormal() const { return below_normal - below_nonzero; }

 private:
  /// 1 or 0, by a signed comparison: SSE2 and AVX2 have no other.
  HALFSCOPE_HD static std::uint32_t is_below(std::uint32_t magnitude, std::uint32_t limit) {
    return static_cast<std::int32_t>(magnitude) < static_cast<std::int32_t>(limit) ? 1u : 0u;
  }
};

}  // namespace halfscope
