// The arithmetic of widening one stored element, for the loops on the CPU and on the device.
#pragma once

#include <cstdint>

#include <halfscope/format/bits.hpp>
#include <halfscope/format/formats.hpp>

namespace halfscope {

/// The number of `code`, as `decode` gives it, without a branch. Signed arithmetic, since SSE2 and AVX2
/// compare signed integers only.
template <FloatFormat format>
HALFSCOPE_HD std::uint32_t widen_code(std::uint32_t code) {
  constexpr int m = format.mantissa_bits, width = 1 + format.exponent_bits + m;
  constexpr std::int32_t top_field = ((1 << format.exponent_bits) - 1) << 23;
  constexpr std::int32_t smallest_special =
      format.specials == Specials::ieee ? top_field : top_field + (((1 << m) - 1) << (23 - m));
  constexpr std::int32_t rebias = (127 - format.bias()) << 23;
  constexpr std::int32_t min_normal = rebias + (1 << 23);

  const auto magnitude = static_cast<std::int32_t>((code & ((1u << (width - 1)) - 1u)) << (23 - m));
  // A subnormal's mantissa counts units of the smallest normal's last place: put it below a one, take the one
  // away.
  const float above_one = from_bits(static_cast<std::uint32_t>(magnitude + min_normal));
  const auto subnormal = static_cast<std::int32_t>(to_bits(above_one - from_bits(min_normal)));
  std::int32_t result = magnitude < (1 << 23) ? subnormal : magnitude + rebias;
  result = magnitude >= smallest_special ? magnitude | static_cast<std::int32_t>(infinity_bits) : result;
  return static_cast<std::uint32_t>(result) | ((code >> (width - 1)) << 31);
}

/// From the nearest float: one step towards zero where that is farther out than the double, then the last bit
/// set unless it is exact. The step back from infinity is the largest float, whose last bit is set.
HALFSCOPE_HD float rounded_to_odd(double exact) {
  const auto nearest = static_cast<float>(exact);
  const double back = nearest;
  const std::uint32_t too_far = (exact < 0 ? back < exact : back > exact) ? 1 : 0;
  const std::uint32_t odd = (to_bits(nearest) - too_far) | 1u;
  const bool inexact = back < exact || back > exact;  // not for NaN
  return from_bits(inexact ? odd : to_bits(nearest));
}

}  // namespace halfscope
