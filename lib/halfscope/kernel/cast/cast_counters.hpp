// Counts what a cast will do to the floats of an array, by the magnitudes at which its format begins and
// ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <halfscope/device/device.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/format/float_format.hpp>
#include <halfscope/format/quantizer.hpp>

namespace halfscope {

/// Elements by what they are and what the cast makes of them.
struct CastCounters {
  std::int64_t zeros = 0;      ///< are zero, of either sign
  std::int64_t nonfinite = 0;  ///< are infinite or NaN
  std::int64_t flushed = 0;    ///< become zero
  std::int64_t subnormal = 0;  ///< become subnormal
  std::int64_t overflow = 0;   ///< are finite and become infinite, or NaN
  float max_abs = 0;           ///< largest finite magnitude

  friend constexpr bool operator==(const CastCounters&, const CastCounters&) = default;
};

/// Adds the counts of another part of the array: integers and a maximum, the same in any order.
inline void merge(CastCounters& all, const CastCounters& part) {
  all.zeros += part.zeros;
  all.nonfinite += part.nonfinite;
  all.flushed += part.flushed;
  all.subnormal += part.subnormal;
  all.overflow += part.overflow;
  all.max_abs = all.max_abs > part.max_abs ? all.max_abs : part.max_abs;
}

/// The smallest magnitudes, as FP32 bits, that a cast makes more than zero, normal and infinite.
struct CastLimits {
  std::uint32_t nonzero = 0, normal = 0, infinite = 0;
};

/// Whether `rounding` makes numbers of one magnitude of all numbers of one magnitude, so that a cast has
/// limits.
[[nodiscard]] constexpr bool is_symmetric(Rounding rounding) {
  return rounding != Rounding::up && rounding != Rounding::down && rounding != Rounding::stochastic;
}

/// The limits by which a number that was rounded to `format` tells what has become of it.
[[nodiscard]] constexpr CastLimits limits_of_rounded(const FloatFormat& format) {
  return {.nonzero = 1,
          .normal = static_cast<std::uint32_t>(format.min_exponent() + 127) << 23,
          .infinite = infinity_bits};
}

/// `count_cast` of an array on the device, which it calls where that is the active one.
namespace cuda {
void count_cast(std::span<const float> values, const CastLimits& limits, CastCounters& counters);
}

/// Adds `values` to `counters`, on one thread.
void count_cast(std::span<const float> values, const CastLimits& limits, CastCounters& counters);

/// Counts a cast to `format` that has made `rounded` of `values`, arrays of one size on the CPU: for
/// roundings to which a magnitude has no limits, such as stochastic ones. Throws InvalidArgument where the
/// two differ in size.
void count_rounded(std::span<const float> values, std::span<const float> rounded, const FloatFormat& format,
                   CastCounters& counters);

}  // namespace halfscope
