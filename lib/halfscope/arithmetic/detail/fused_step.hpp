// One step of a tensor core in integers, written once for host and device: the definition that every faster
// form equals.
#pragma once

#include <cstddef>
#include <cstdint>

#include <halfscope/arithmetic/tensor_core.hpp>
#include <halfscope/format/bits.hpp>

namespace halfscope::detail {

/// significand * 2^(exponent - fraction bits): subnormal numbers keep the smallest exponent.
struct Decoded {
  std::int64_t significand;
  int exponent;
};

[[nodiscard]] HALFSCOPE_HD constexpr int larger(int x, int y) {
  return x < y ? y : x;
}
[[nodiscard]] HALFSCOPE_HD constexpr int smaller(int x, int y) {
  return x < y ? x : y;
}

[[nodiscard]] HALFSCOPE_HD Decoded decode(float x, const FloatFormat& format) {
  const int field = static_cast<int>(magnitude_bits(x) >> 23);
  const std::uint32_t fraction = to_bits(x) & 0x7FFFFFu;
  const int exponent = larger(field, 1) - 127;
  const int kept = larger(exponent, format.min_exponent());
  const int shift = smaller(23 - format.mantissa_bits + kept - exponent, 31);
  const std::int64_t significand = (fraction | (field != 0 ? 0x800000u : 0u)) >> shift;
  return {(to_bits(x) & sign_bit) != 0 ? -significand : significand, kept};
}

[[nodiscard]] HALFSCOPE_HD Decoded multiply(const Decoded& x, const Decoded& y) {
  return {x.significand * y.significand, x.exponent + y.exponent};
}

/// The one NaN of a tensor core, as a float.
[[nodiscard]] HALFSCOPE_HD float canonical_nan(const FloatFormat& output) {
  constexpr FloatFormat half = fp16;  // device code may not refer to fp16 itself
  return from_bits(output == half ? 0x7FFFE000u : 0x7FFFFFFFu);
}

/// The infinities and NaNs among products and accumulator.
struct Exceptions {
  bool nan = false;
  bool positive = false;
  bool negative = false;

  HALFSCOPE_HD void see(float x) {
    nan |= magnitude_bits(x) > infinity_bits;
    positive |= to_bits(x) == infinity_bits;
    negative |= to_bits(x) == (infinity_bits | sign_bit);
  }
  [[nodiscard]] HALFSCOPE_HD bool any() const { return nan || positive || negative; }
  [[nodiscard]] HALFSCOPE_HD float result(const FloatFormat& output) const {
    if (nan || (positive && negative)) return canonical_nan(output);
    return from_bits(positive ? infinity_bits : infinity_bits | sign_bit);
  }
};

/// significand * 2^(lift - distance), cut off toward zero.
[[nodiscard]] HALFSCOPE_HD std::int64_t align(std::int64_t significand, int lift, int distance) {
  const std::int64_t magnitude = significand < 0 ? -significand : significand;
  const std::int64_t cut =
      lift >= 0 ? (magnitude << lift) >> smaller(distance, 63) : magnitude >> smaller(distance - lift, 63);
  return significand < 0 ? -cut : cut;
}

/// sum * 2^unit, rounded once; a zero is +0.
[[nodiscard]] HALFSCOPE_HD float round_sum(std::int64_t sum, int unit, const TensorCoreStep& step) {
  if (sum == 0) return 0;
  const FloatFormat& format = step.result;
  const auto magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  const int exponent = 63 - leading_zeros(magnitude) + unit;
  const int last_place = larger(exponent, format.min_exponent()) - format.mantissa_bits;
  const int dropped = smaller(last_place - unit, 63);
  std::uint64_t kept = dropped > 0 ? magnitude >> dropped : magnitude << -dropped;
  if (dropped > 0 && step.rounding == Rounding::nearest_even) {
    const std::uint64_t rest = magnitude - (kept << dropped), half = std::uint64_t{1} << (dropped - 1);
    if (rest > half || (rest == half && kept % 2 == 1)) ++kept;
  }
  if (kept == 0) return 0;
  const double value = static_cast<double>(kept) * power_of_two(last_place);  // exact
  const bool overflows = value >= power_of_two(format.max_exponent() + 1);
  const std::uint32_t sign = sum < 0 ? sign_bit : 0;
  return from_bits(sign | (overflows ? infinity_bits : to_bits(static_cast<float>(value))));
}

/// c and the sum of products(i), i below `count`, which is at most `most_products`; all are finite.
template <std::size_t most_products, typename Products>
[[nodiscard]] HALFSCOPE_HD float add_finite(const Products& products, int count, float c,
                                            const TensorCoreStep& step) {
  Decoded terms[most_products];
  Decoded start = decode(c, step.output);
  if (start.significand == 0) start.exponent = step.zero_exponent;
  int largest = start.exponent;
  for (int i = 0; i < count; ++i) {
    terms[i] = products(i);
    if (terms[i].significand == 0) terms[i].exponent = step.zero_exponent;
    largest = larger(largest, terms[i].exponent);
  }
  const int lift = step.fraction_bits - 2 * step.input.mantissa_bits;
  std::int64_t sum =
      align(start.significand, step.fraction_bits - step.output.mantissa_bits, largest - start.exponent);
  for (int i = 0; i < count; ++i) sum += align(terms[i].significand, lift, largest - terms[i].exponent);
  return round_sum(sum, largest - step.fraction_bits, step);
}

/// `fused_step` of the operands x.a(i) and x.b(i), i below `count`, which is at most `most_products`.
template <std::size_t most_products, typename Operands>
[[nodiscard]] HALFSCOPE_HD float fused_step(const Operands& x, int count, float c,
                                            const TensorCoreStep& step) {
  Exceptions specials;
  specials.see(c);
  for (int i = 0; i < count; ++i) {
    const float a = x.a(i), b = x.b(i);
    // The product of finite numbers may overflow a float; it is not special.
    if (magnitude_bits(a) >= infinity_bits || magnitude_bits(b) >= infinity_bits) specials.see(a * b);
  }
  if (specials.any()) return specials.result(step.output);
  const auto product = [&](int i) {
    return multiply(decode(x.a(i), step.input), decode(x.b(i), step.input));
  };
  return add_finite<most_products>(product, count, c, step);
}

}  // namespace halfscope::detail
