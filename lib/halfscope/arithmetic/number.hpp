// A scalar type with operators: a number of a format, every operation on it exact and rounded once.
#pragma once

#include <cmath>
#include <compare>
#include <concepts>
#include <ostream>

#include <halfscope/arithmetic/operations.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/format/round.hpp>

namespace halfscope {

namespace detail {

/// Whether the rounding of a float result gives what one rounding of the exact result gives: always where the
/// format is FP32; to the nearest with 11 significand bits, since FP32 has 2 * 11 + 2 (Figueroa, "When is
/// double rounding innocuous?", SIGNUM 1995).
[[nodiscard]] constexpr bool rounds_twice_as_once(const Quantizer& q) {
  const bool nearest = q.rounding == Rounding::nearest_even;
  return nearest && (q.format == FloatFormat{} || q.format.mantissa_bits <= 10);
}

/// Whether that holds for a product or quotient, which in formats with FP32's exponents may lose bits below
/// the smallest normal float; there the result is worked out exactly.
[[nodiscard]] constexpr bool rounds_twice_as_once(const Quantizer& q, float result) {
  const bool wide = q.format.exponent_bits == 8 && q.format.mantissa_bits < 23;
  return !wide || magnitude_bits(result) >= 2u << 23;
}

/// Any double, rounded once. A subnormal one is far below every format; a normal one of its sign does as
/// well.
[[nodiscard]] inline float round_any_double(double x, const Quantizer& q) {
  if (x == 0 || x != x || std::isinf(x)) return round(static_cast<float>(x), q);
  return round_double(can_round_double(x, q) ? x : std::copysign(0x1p-1000, x), q).value;
}

}  // namespace detail

/// A number of `q.format`; operations round as `q` says, and equal those of arithmetic/operations.hpp bit for
/// bit. It takes the room of a float. Conversions are explicit, those to the type rounded once, too.
template <Quantizer q>
class Number {
  static_assert(q.rounding != Rounding::stochastic, "operators have no random bits to draw");
  static_assert(q.format.sign == SignBit::present, "operators need numbers of either sign");

 public:
  static constexpr Quantizer quantizer = q;

  constexpr Number() = default;
  constexpr explicit Number(float x) : value_(round(x, q)) {}
  explicit Number(double x) : value_(detail::round_any_double(x, q)) {}
  /// Integers beyond 2^53 go by way of double.
  template <std::integral Integer>
  explicit Number(Integer x) : Number(static_cast<double>(x)) {}
  template <Quantizer other>
  requires(other != q) constexpr explicit Number(Number<other> x) : Number(static_cast<float>(x)) {}

  /// The number of a code, 0x3c00 for 1 of fp16; the one NaN for every code of a NaN.
  [[nodiscard]] static constexpr Number from_code(std::uint32_t code) {
    return Number(decode(code, q.format));
  }
  [[nodiscard]] constexpr std::uint32_t code() const { return encode(value_, q.format); }

  constexpr explicit operator float() const { return value_; }
  constexpr explicit operator double() const { return double{value_}; }
  template <std::integral Integer>
  constexpr explicit operator Integer() const {
    return static_cast<Integer>(value_);
  }

  constexpr Number operator-() const { return kept(from_bits(negated(value_))); }
  constexpr Number operator+() const { return *this; }

  friend Number operator+(Number a, Number b) {
    if constexpr (twice) return rounded(a.value_ + b.value_);
    return kept(add(a.value_, b.value_, q).value);
  }
  friend Number operator-(Number a, Number b) {
    if constexpr (twice) return rounded(a.value_ - b.value_);
    return kept(sub(a.value_, b.value_, q).value);
  }
  friend Number operator*(Number a, Number b) {
    const float product = a.value_ * b.value_;
    if (twice && detail::rounds_twice_as_once(q, product)) return rounded(product);
    return kept(mul(a.value_, b.value_, q).value);
  }
  friend Number operator/(Number a, Number b) {
    const float quotient = a.value_ / b.value_;
    if (twice && detail::rounds_twice_as_once(q, quotient)) return rounded(quotient);
    return kept(div(a.value_, b.value_, q).value);
  }
  Number& operator+=(Number x) { return *this = *this + x; }
  Number& operator-=(Number x) { return *this = *this - x; }
  Number& operator*=(Number x) { return *this = *this * x; }
  Number& operator/=(Number x) { return *this = *this / x; }

  /// As floats compare: the zeros are equal, NaN is unordered.
  friend constexpr bool operator==(Number a, Number b) { return a.value_ == b.value_; }
  friend constexpr std::partial_ordering operator<=>(Number a, Number b) { return a.value_ <=> b.value_; }

  friend Number sqrt(Number x) { return kept(sqrt(x.value_, q).value); }
  /// a * b + c, rounded once.
  friend Number fma(Number a, Number b, Number c) { return kept(fma(a.value_, b.value_, c.value_, q).value); }
  friend Number remainder(Number a, Number b) { return kept(rem(a.value_, b.value_, q).value); }
  friend constexpr Number abs(Number x) { return isnan(x) ? x : kept(from_bits(magnitude_bits(x.value_))); }
  /// The smaller, or where one is NaN the other (minimumNumber of IEEE 754-2019, 9.6); -0 is below +0.
  friend constexpr Number min(Number a, Number b) { return below(a, b) ? a : b; }
  friend constexpr Number max(Number a, Number b) { return isnan(a) || (!isnan(b) && below(a, b)) ? b : a; }
  friend constexpr bool isnan(Number x) { return magnitude_bits(x.value_) > infinity_bits; }
  friend constexpr bool isinf(Number x) { return magnitude_bits(x.value_) == infinity_bits; }
  friend constexpr bool isfinite(Number x) { return magnitude_bits(x.value_) < infinity_bits; }
  friend constexpr bool signbit(Number x) { return (to_bits(x.value_) & sign_bit) != 0; }

  /// As the stream prints a float.
  friend std::ostream& operator<<(std::ostream& out, Number x) { return out << x.value_; }

 private:
  static constexpr bool twice = detail::rounds_twice_as_once(q);

  /// `x` is of the format already.
  static constexpr Number kept(float x) {
    Number number;
    number.value_ = x;
    return number;
  }
  static constexpr Number rounded(float x) {
    return kept(round_on_grid<Rounding::nearest_even>(x, rounding_grid(q)));
  }
  static constexpr std::uint32_t negated(float x) {
    const bool is_kept = magnitude_bits(x) > infinity_bits || (x == 0 && !q.format.has_signed_zero());
    return is_kept ? to_bits(x) : to_bits(x) ^ sign_bit;
  }
  /// NaN is above everything.
  static constexpr bool below(Number a, Number b) {
    if (isnan(a) || isnan(b)) return !isnan(a);
    return a.value_ < b.value_ || (a.value_ == b.value_ && signbit(a));
  }

  float value_ = 0;
};

}  // namespace halfscope

#include <halfscope/arithmetic/number_traits.hpp>  // numeric_limits and formatting, which no Number is without
