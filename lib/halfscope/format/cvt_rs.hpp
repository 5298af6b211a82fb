// Stochastic conversion of four numbers by 32 random bits, as PTX's cvt.rs does it on Blackwell.
#pragma once

#include <array>
#include <cstdint>

#include <halfscope/format/encoding.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/format/round.hpp>

namespace halfscope {

/// The 16 bits of each number of cvt.rs, in the order of its operands: a, b, e, f. Two numbers share 16 bits:
/// b and f have them as they are, a and e in reverse. They are the upper and the lower half of `rbits`, of
/// FP4 the upper and the lower bytes of both halves. (Read off a B200 by the author of an emulator, one
/// source.)
[[nodiscard]] constexpr std::array<std::uint32_t, 4> cvt_rs_bits(std::uint32_t rbits,
                                                                 const FloatFormat& format) {
  const auto reversed = [](std::uint32_t bits) {
    std::uint32_t result = 0;
    for (int i = 0; i < 16; ++i) result |= (bits >> i & 1u) << (15 - i);
    return result;
  };
  std::uint32_t b = rbits >> 16, f = rbits & 0xFFFFu;
  if (code_width(format) == 4) {
    const std::uint32_t upper = b, lower = f;
    b = (upper & 0xFF00u) | lower >> 8;
    f = (upper & 0xFFu) << 8 | (lower & 0xFFu);
  }
  return {reversed(b), b, reversed(f), f};
}

/// The codes of a, b, e and f by cvt.rs.satfinite to E4M3, E5M2, FP6 or FP4: a number goes up where its bits
/// carry over the discarded fraction, cut off to 16 bits, and saturates. A NaN has the code 7f in 8 bits, and
/// that of the largest number in fewer.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> cvt_rs(const std::array<float, 4>& x,
                                                            const FloatFormat& format, std::uint32_t rbits) {
  const Quantizer quantizer{format, Rounding::stochastic, Overflow::saturate, 16};
  const std::array<std::uint32_t, 4> bits = cvt_rs_bits(rbits, format);
  std::array<std::uint32_t, 4> codes{};
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const bool is_nan = magnitude_bits(x[i]) > infinity_bits;
    const std::uint32_t largest = code_width(format) == 8 ? 0x7Fu : format.max_finite_code();
    codes[i] = is_nan ? largest : encode(round(x[i], quantizer, bits[i] << 16), format);
  }
  return codes;
}

}  // namespace halfscope
