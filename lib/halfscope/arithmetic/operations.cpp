// Special operands, signs of zero, and then the exact result rounded once.
#include <halfscope/arithmetic/operations.hpp>

#include <halfscope/format/encoding.hpp>

namespace halfscope {
namespace {

constexpr Flagged invalid_result{from_bits(quiet_nan_bits), flag::invalid};

bool is_nan(float x) {
  return magnitude_bits(x) > infinity_bits;
}
bool is_infinite(float x) {
  return magnitude_bits(x) == infinity_bits;
}
bool is_zero(float x) {
  return magnitude_bits(x) == 0;
}
std::uint32_t sign_of(float x) {
  return to_bits(x) & sign_bit;
}

template <typename... Floats>
bool any_nan(Floats... x) {
  return (is_nan(x) || ...);
}

/// The result of an operation on NaNs.
template <typename... Floats>
Flagged nan_from(Floats... x) {
  return {from_bits(quiet_nan_bits), (is_signalling(x) || ...) ? flag::invalid : std::uint8_t{0}};
}

/// Zero of this sign, or +0 where zero has none.
float zero_of(std::uint32_t sign, const Quantizer& q) {
  return from_bits(q.format.has_signed_zero() ? sign : 0u);
}

/// `sign_of_zero` is the sign of an exact zero.
Flagged finish(const Exact& x, std::uint32_t sign_of_zero, const Quantizer& q, std::uint32_t random_bits) {
  if (x.significand == 0) return {zero_of(sign_of_zero, q)};
  return round_exact(x, q, random_bits);
}

/// Sign of a sum that is exactly zero: the terms' sign where they agree, else + but in round down (6.3).
std::uint32_t sign_of_zero_sum(std::uint32_t a, std::uint32_t b, Rounding rounding) {
  if (a == b) return a;
  return rounding == Rounding::down ? sign_bit : 0;
}

}  // namespace

Flagged detail::add_any(float a, float b, const Quantizer& q, std::uint32_t random_bits) {
  if (any_nan(a, b)) return nan_from(a, b);
  if (is_infinite(a) && is_infinite(b) && sign_of(a) != sign_of(b)) return invalid_result;
  if (is_infinite(a)) return round_infinity(sign_of(a), q);
  if (is_infinite(b)) return round_infinity(sign_of(b), q);
  return finish(exact_sum(unpack(a), unpack(b)), sign_of_zero_sum(sign_of(a), sign_of(b), q.rounding), q,
                random_bits);
}

Flagged detail::mul_any(float a, float b, const Quantizer& q, std::uint32_t random_bits) {
  if (any_nan(a, b)) return nan_from(a, b);
  const std::uint32_t sign = sign_of(a) ^ sign_of(b);
  if (is_infinite(a) || is_infinite(b)) {
    return is_zero(a) || is_zero(b) ? invalid_result : round_infinity(sign, q);
  }
  return finish(exact_product(unpack(a), unpack(b)), sign, q, random_bits);
}

Flagged detail::div_any(float a, float b, const Quantizer& q, std::uint32_t random_bits) {
  if (any_nan(a, b)) return nan_from(a, b);
  const std::uint32_t sign = sign_of(a) ^ sign_of(b);
  if (is_infinite(a)) return is_infinite(b) ? invalid_result : round_infinity(sign, q);
  if (is_infinite(b)) return {zero_of(sign, q)};
  if (is_zero(b)) {
    return is_zero(a) ? invalid_result : Flagged{round_infinity(sign, q).value, flag::divide_by_zero};
  }
  if (is_zero(a)) return {zero_of(sign, q)};
  return round_exact(exact_quotient(unpack(a), unpack(b)), q, random_bits);
}

Flagged sqrt(float a, const Quantizer& q, std::uint32_t random_bits) {
  if (is_nan(a)) return nan_from(a);
  if (is_zero(a)) return {zero_of(sign_of(a), q)};
  if (sign_of(a) != 0) return invalid_result;
  if (is_infinite(a)) return round_infinity(0, q);
  return round_exact(exact_root(unpack(a)), q, random_bits);
}

Flagged fma(float a, float b, float c, const Quantizer& q, std::uint32_t random_bits) {
  const bool infinity_times_zero = (is_infinite(a) && is_zero(b)) || (is_zero(a) && is_infinite(b));
  if (infinity_times_zero) return invalid_result;
  if (any_nan(a, b, c)) return nan_from(a, b, c);
  const std::uint32_t sign = sign_of(a) ^ sign_of(b);
  const bool infinite_product = is_infinite(a) || is_infinite(b);
  if (infinite_product && is_infinite(c) && sign != sign_of(c)) return invalid_result;
  if (infinite_product) return round_infinity(sign, q);
  if (is_infinite(c)) return round_infinity(sign_of(c), q);
  const Exact product = exact_product(unpack(a), unpack(b));
  return finish(exact_sum(product, unpack(c)), sign_of_zero_sum(sign, sign_of(c), q.rounding), q,
                random_bits);
}

Flagged rem(float a, float b, const Quantizer& q, std::uint32_t random_bits) {
  if (any_nan(a, b)) return nan_from(a, b);
  if (is_infinite(a) || is_zero(b)) return invalid_result;
  if (is_infinite(b)) return finish(unpack(a), sign_of(a), q, random_bits);
  return finish(exact_remainder(unpack(a), unpack(b)), sign_of(a), q, random_bits);
}

Flagged detail::convert_any(float a, const Quantizer& q, std::uint32_t random_bits) {
  if (is_nan(a)) return nan_from(a);
  if (is_infinite(a)) return round_infinity(sign_of(a), q);
  return finish(unpack(a), sign_of(a), q, random_bits);
}

Flagged round_to_integral(float a, const Quantizer& q, InexactFlag inexact, std::uint32_t random_bits) {
  if (is_nan(a) || is_infinite(a) || is_zero(a)) return convert(a, q);
  const Exact x = unpack(a);
  const Exact integer = round_to_integer(x, q.rounding, random_bits);
  Flagged result = finish(integer, sign_of(a), q, random_bits);
  const Exact change = exact_sum(integer, {x.sign ^ sign_bit, x.exponent, x.significand});
  if (inexact == InexactFlag::raised && change.significand != 0) result.flags |= flag::inexact;
  return result;
}

FlaggedBool equal(float a, float b) {
  const bool signalling = is_signalling(a) || is_signalling(b);
  return {!any_nan(a, b) && a == b, signalling ? flag::invalid : std::uint8_t{0}};
}

FlaggedBool less(float a, float b) {
  if (any_nan(a, b)) return {false, flag::invalid};
  return {a < b};
}

FlaggedBool less_equal(float a, float b) {
  if (any_nan(a, b)) return {false, flag::invalid};
  return {a <= b};
}

}  // namespace halfscope
