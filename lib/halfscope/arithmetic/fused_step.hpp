// One step of a tensor core in integers, written once for host and device: the definition that every faster
// form equals.
#pragma once

#include <cstddef>
#include <cstdint>

#include <halfscope/arithmetic/tensor_core.hpp>
#include <halfscope/format/bits.hpp>

namespace halfscope::detail {

/// (-1)^negative * significand * 2^(exponent - fraction bits): subnormal numbers keep the smallest exponent.
struct Decoded {
  std::int64_t significand = 0;
  int exponent = 0;
  bool negative = false;
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
  const std::uint32_t significand = (fraction | (field != 0 ? 0x800000u : 0u)) >> shift;
  return {significand, kept, (to_bits(x) & sign_bit) != 0};
}

[[nodiscard]] HALFSCOPE_HD Decoded multiply(const Decoded& x, const Decoded& y) {
  return {x.significand * y.significand, x.exponent + y.exponent, x.negative != y.negative};
}

/// The one NaN of a tensor core, as a float.
[[nodiscard]] HALFSCOPE_HD float canonical_nan(const FloatFormat& output) {
  return from_bits(output == FloatFormat{5, 10} ? 0x7FFFE000u : 0x7FFFFFFFu);
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

/// significand / 2^fraction in units of 2^-bits, moved down by `distance` and cut off.
[[nodiscard]] HALFSCOPE_HD std::int64_t align(const Decoded& x, int fraction, int bits, int distance) {
  const int shift = bits - fraction - distance;
  const std::int64_t cut = shift >= 0 ? x.significand << shift : x.significand >> smaller(-shift, 63);
  return x.negative ? -cut : cut;
}

/// sum * 2^unit, rounded once.
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
  const double value = static_cast<double>(kept) * power_of_two(last_place);  // exact
  const bool overflows = value >= power_of_two(format.max_exponent() + 1);
  const std::uint32_t sign = sum < 0 ? sign_bit : 0;
  return from_bits(sign | (overflows ? infinity_bits : to_bits(static_cast<float>(value))));
}

/// `fused_step` of the operands x.a(i) and x.b(i), i below `count`, which is at most `most_products`.
template <std::size_t most_products, typename Operands>
[[nodiscard]] HALFSCOPE_HD float fused_step(const Operands& x, int count, float c,
                                            const TensorCoreStep& step) {
  Decoded products[most_products];
  Exceptions specials;
  specials.see(c);
  Decoded start = decode(c, step.output);
  if (start.significand == 0) start.exponent = step.zero_exponent;
  int largest = start.exponent;
  for (int i = 0; i < count; ++i) {
    const float a = x.a(i), b = x.b(i);
    // The product of finite numbers may overflow a float; it is not special.
    if (magnitude_bits(a) >= infinity_bits || magnitude_bits(b) >= infinity_bits) specials.see(a * b);
    products[i] = multiply(decode(a, step.input), decode(b, step.input));
    if (products[i].significand == 0) products[i].exponent = step.zero_exponent;
    largest = larger(largest, products[i].exponent);
  }
  if (specials.any()) return specials.result(step.output);
  std::int64_t sum = align(start, step.output.mantissa_bits, step.fraction_bits, largest - start.exponent);
  for (int i = 0; i < count; ++i) {
    sum +=
        align(products[i], 2 * step.input.mantissa_bits, step.fraction_bits, largest - products[i].exponent);
  }
  return round_sum(sum, largest - step.fraction_bits, step);
}

}  // namespace halfscope::detail
