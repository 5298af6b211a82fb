// Exact sums, products, quotients, roots and remainders of floats, before anything is rounded.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <halfscope/format/bits.hpp>

namespace halfscope {

/// (-1)^sign * significand * 2^exponent. Where the true number has further bits, the lowest bit of the
/// significand is 1 ("sticky") and at least 57 bits of it are significant: enough to round to 24 bits in any
/// direction, and stochastically with 32 random bits.
struct Exact {
  std::uint32_t sign = 0;  ///< sign_bit or 0
  int exponent = 0;
  std::uint64_t significand = 0;
};

__extension__ using Uint128 = unsigned __int128;

/// The value of a finite float.
[[nodiscard]] constexpr Exact unpack(float x) {
  const std::uint32_t magnitude = magnitude_bits(x);
  const std::uint32_t field = magnitude >> 23 != 0 ? magnitude >> 23 : 1;
  return {to_bits(x) & sign_bit, static_cast<int>(field) - 150, magnitude - ((field - 1) << 23)};
}

namespace detail {

constexpr int bit_width(std::uint64_t x) {
  return 64 - std::countl_zero(x);
}
constexpr int bit_width(Uint128 x) {
  const auto high = static_cast<std::uint64_t>(x >> 64);
  return high != 0 ? 64 + bit_width(high) : bit_width(static_cast<std::uint64_t>(x));
}

/// x >> shift, with the lowest bit set where a bit was lost.
constexpr Uint128 shift_right_jam(Uint128 x, int shift) {
  if (shift == 0) return x;
  if (shift > 127) return x != 0 ? 1 : 0;
  return (x >> shift) | ((x << (128 - shift)) != 0 ? 1 : 0);
}

/// The upper 64 significant bits of `wide`, jammed.
constexpr Exact narrow(std::uint32_t sign, int exponent, Uint128 wide) {
  const int excess = bit_width(wide) - 64;
  if (excess <= 0) return {sign, exponent, static_cast<std::uint64_t>(wide)};
  return {sign, exponent + excess, static_cast<std::uint64_t>(shift_right_jam(wide, excess))};
}

}  // namespace detail

/// The sum of numbers without a sticky bit and with at most 48 significant bits; a zero sum has significand
/// 0.
[[nodiscard]] constexpr Exact exact_sum(Exact a, Exact b) {
  if (a.significand == 0) return b;
  if (b.significand == 0) return a;
  if (a.exponent < b.exponent) std::swap(a, b);
  const int distance = a.exponent - b.exponent;
  if (detail::bit_width(a.significand) + distance < 63) {  // the usual case: 64 bits hold the sum
    const auto term_a = static_cast<std::int64_t>(a.significand << distance);
    const auto term_b = static_cast<std::int64_t>(b.significand);
    const std::int64_t sum = a.sign == b.sign ? term_a + term_b : term_a - term_b;
    return {sum < 0 ? a.sign ^ sign_bit : a.sign, b.exponent,
            static_cast<std::uint64_t>(sum < 0 ? -sum : sum)};
  }
  // Both get their leading one at bit 125: room for a carry, and for 77 bits below a product.
  const int shift_a = 126 - detail::bit_width(a.significand);
  const int shift_b = 126 - detail::bit_width(b.significand);
  Uint128 wide_a = Uint128{a.significand} << shift_a;
  Uint128 wide_b = Uint128{b.significand} << shift_b;
  int exponent_a = a.exponent - shift_a;
  int exponent_b = b.exponent - shift_b;
  if (exponent_a < exponent_b || (exponent_a == exponent_b && wide_a < wide_b)) {
    std::swap(a.sign, b.sign);
    std::swap(wide_a, wide_b);
    std::swap(exponent_a, exponent_b);
  }
  // Bits are jammed only from a distance where a difference cancels one leading bit at most.
  wide_b = detail::shift_right_jam(wide_b, exponent_a - exponent_b);
  return detail::narrow(a.sign, exponent_a, a.sign == b.sign ? wide_a + wide_b : wide_a - wide_b);
}

/// The product of two floats: at most 48 bits.
[[nodiscard]] constexpr Exact exact_product(const Exact& a, const Exact& b) {
  return {a.sign ^ b.sign, a.exponent + b.exponent, a.significand * b.significand};
}

/// A sum of any number of floats and of products of two, as an integer in units of 2^-298.
class ExactSum {
 public:
  constexpr void add(const Exact& x) {
    const int place = x.exponent + 298;
    Uint128 rest = Uint128{x.significand} << (place % 32);
    for (auto limb = static_cast<std::size_t>(place / 32); rest != 0; ++limb, rest >>= 32) {
      const auto part = static_cast<std::int64_t>(rest & 0xFFFFFFFFu);
      limbs_[limb] += x.sign != 0 ? -part : part;
    }
  }
  [[nodiscard]] constexpr bool is_zero() const { return total().significand == 0; }

  /// The sum, with a sticky bit; of zero the positive one.
  [[nodiscard]] constexpr Exact total() const {
    Limbs limbs = carried(limbs_);
    const bool negative = limbs.back() < 0;
    if (negative) {
      for (std::int64_t& limb : limbs) limb = -limb;
      limbs = carried(limbs);
    }
    std::size_t top = limbs.size() - 1;
    while (top > 2 && limbs[top] == 0) --top;
    Uint128 wide = 0;
    for (std::size_t i = top + 1; i-- > top - 2;) wide = wide << 32 | static_cast<std::uint64_t>(limbs[i]);
    bool rest = false;
    for (std::size_t i = 0; i + 2 < top; ++i) rest |= limbs[i] != 0;
    Exact sum = detail::narrow(negative ? sign_bit : 0, static_cast<int>(top - 2) * 32 - 298, wide);
    if (rest) sum.significand |= 1;
    return sum;
  }

 private:
  using Limbs = std::array<std::int64_t, 20>;  ///< 32 bits each, and room for 2^31 carries

  /// The same number with limbs of 0 to 2^32 - 1, all but the last, which has the sign.
  [[nodiscard]] static constexpr Limbs carried(Limbs limbs) {
    for (std::size_t i = 0; i + 1 < limbs.size(); ++i) {
      limbs[i + 1] += limbs[i] >> 32;
      limbs[i] &= 0xFFFFFFFF;
    }
    return limbs;
  }

  Limbs limbs_{};
};

/// The quotient of two floats that are not zero.
[[nodiscard]] constexpr Exact exact_quotient(const Exact& a, const Exact& b) {
  // With both leading ones at bit 23, two long-division steps of 30 and 31 bits give 61 or 62.
  const int shift_a = 24 - detail::bit_width(a.significand);
  const int shift_b = 24 - detail::bit_width(b.significand);
  const std::uint64_t divisor = b.significand << shift_b;
  const std::uint64_t first = a.significand << (shift_a + 30);
  const std::uint64_t second = (first % divisor) << 31;  // NOLINT(*-core.DivideZero): b is not zero
  const std::uint64_t quotient = ((first / divisor) << 31) + second / divisor;
  return {a.sign ^ b.sign, a.exponent - shift_a - (b.exponent - shift_b) - 61,
          quotient | (second % divisor != 0 ? 1u : 0u)};
}

/// The square root of a positive float.
[[nodiscard]] constexpr Exact exact_root(const Exact& x) {
  // The radicand gets 115 or 116 bits and an even exponent, the root 58.
  int shift = 116 - detail::bit_width(x.significand);
  if ((x.exponent - shift) % 2 != 0) --shift;
  Uint128 rest = Uint128{x.significand} << shift;
  Uint128 root = 0;
  for (Uint128 bit = Uint128{1} << 114; bit != 0; bit >>= 2) {  // one bit of the root per step
    const Uint128 trial = root + bit;
    root >>= 1;
    if (rest >= trial) {
      rest -= trial;
      root += bit;
    }
  }
  return {0, (x.exponent - shift) / 2, static_cast<std::uint64_t>(root) | (rest != 0 ? 1u : 0u)};
}

/// x - n y with n the integer nearest to x / y, the even one of two (IEEE 754-2019, 5.3.1); y is not zero.
[[nodiscard]] constexpr Exact exact_remainder(const Exact& x, const Exact& y) {
  int distance = x.exponent - y.exponent;
  if (x.significand == 0 || distance < -25) return x;  // |x| < |y| / 2
  const std::uint64_t divisor = y.significand << (distance < 0 ? -distance : 0);
  const int exponent = distance < 0 ? x.exponent : y.exponent;
  std::uint64_t quotient = x.significand / divisor;
  std::uint64_t rest = x.significand % divisor;
  for (int step = 0; distance > 0; distance -= step) {  // only the last bit of the quotient matters
    step = distance < 32 ? distance : 32;
    quotient = (rest << step) / divisor;
    rest = (rest << step) % divisor;
  }
  const bool up = 2 * rest > divisor || (2 * rest == divisor && quotient % 2 == 1);
  return {up ? x.sign ^ sign_bit : x.sign, exponent, up ? divisor - rest : rest};
}

}  // namespace halfscope
