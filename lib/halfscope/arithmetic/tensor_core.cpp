// The tensor-core models in integers: the definition that every faster form equals.
#include <halfscope/arithmetic/tensor_core.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include <halfscope/format/round.hpp>

namespace halfscope {
namespace {

/// (-1)^negative * significand * 2^(exponent - fraction bits): subnormal numbers keep the smallest exponent.
struct Decoded {
  bool negative = false;
  std::int64_t significand = 0;
  int exponent = 0;
};

Decoded decode(float x, const FloatFormat& format) {
  const int field = static_cast<int>(magnitude_bits(x) >> 23);
  const std::uint32_t fraction = to_bits(x) & 0x7FFFFFu;
  const int exponent = std::max(field, 1) - 127;
  const int kept = std::max(exponent, format.min_exponent());
  const int shift = std::min(23 - format.mantissa_bits + kept - exponent, 31);
  const std::uint32_t significand = (fraction | (field != 0 ? 0x800000u : 0u)) >> shift;
  return {std::signbit(x), significand, kept};
}

Decoded multiply(const Decoded& x, const Decoded& y) {
  return {x.negative != y.negative, x.significand * y.significand, x.exponent + y.exponent};
}

/// The one NaN of a tensor core, as a float.
float canonical_nan(const FloatFormat& output) {
  return from_bits(output == fp16 ? 0x7FFFE000u : 0x7FFFFFFFu);
}

/// The infinities and NaNs among products and accumulator.
struct Exceptions {
  bool nan = false;
  bool positive = false;
  bool negative = false;

  void see(float x) {
    nan |= std::isnan(x);
    if (std::isinf(x)) (std::signbit(x) ? negative : positive) = true;
  }
  [[nodiscard]] bool any() const { return nan || positive || negative; }
  [[nodiscard]] float result(const FloatFormat& output) const {
    if (nan || (positive && negative)) return canonical_nan(output);
    return positive ? INFINITY : -INFINITY;
  }
};

Exceptions exceptions_of(std::span<const float> a, std::span<const float> b, float c) {
  Exceptions specials;
  specials.see(c);
  for (std::size_t i = 0; i < a.size(); ++i) {
    // The product of finite numbers may overflow a float; it is not special.
    if (std::isfinite(a[i]) && std::isfinite(b[i])) continue;
    specials.see(a[i] * b[i]);
  }
  return specials;
}

/// significand / 2^fraction in units of 2^-bits, moved down by `distance` and cut off.
std::int64_t align(const Decoded& x, int fraction, int bits, int distance) {
  const int shift = bits - fraction - distance;
  const std::int64_t cut = shift >= 0 ? x.significand << shift : x.significand >> std::min(-shift, 63);
  return x.negative ? -cut : cut;
}

/// sum * 2^unit, rounded once.
float round_exact(std::int64_t sum, int unit, const TensorCoreStep& step) {
  if (sum == 0) return 0;
  const FloatFormat& format = step.result;
  const auto magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  const int exponent = 63 - std::countl_zero(magnitude) + unit;
  const int last_place = std::max(exponent, format.min_exponent()) - format.mantissa_bits;
  const int dropped = std::min(last_place - unit, 63);
  std::uint64_t kept = dropped > 0 ? magnitude >> dropped : magnitude << -dropped;
  if (dropped > 0 && step.rounding == Rounding::nearest_even) {
    const std::uint64_t rest = magnitude - (kept << dropped), half = std::uint64_t{1} << (dropped - 1);
    if (rest > half || (rest == half && kept % 2 == 1)) ++kept;
  }
  const double value = std::ldexp(static_cast<double>(kept), last_place);
  const bool overflows = value >= std::ldexp(1.0, format.max_exponent() + 1);
  return std::copysign(overflows ? INFINITY : static_cast<float>(value), sum < 0 ? -1.0f : 1.0f);
}

}  // namespace

const TensorCoreStep& tensor_core_step(const TensorCore& core, const FloatFormat& input,
                                       const FloatFormat& output) {
  for (const TensorCoreEntry& entry : tensor_core_table) {
    const TensorCoreStep& step = entry.step;
    if (entry.generation == core.generation && step.input == input && step.output == output) return step;
  }
  throw RequestError(fmt::format("the {} tensor core has no products of {} that add up in {}",
                                 name_of(core.generation), to_string(input), to_string(output)));
}

float fused_step(std::span<const float> a, std::span<const float> b, float c, const TensorCoreStep& step) {
  const Exceptions specials = exceptions_of(a, b, c);
  if (specials.any()) return specials.result(step.output);
  Decoded start = decode(c, step.output);
  if (start.significand == 0) start.exponent = step.zero_exponent;
  int largest = start.exponent;
  std::array<Decoded, 64> products;
  for (std::size_t i = 0; i < a.size(); ++i) {
    products[i] = multiply(decode(a[i], step.input), decode(b[i], step.input));
    if (products[i].significand == 0) products[i].exponent = step.zero_exponent;
    largest = std::max(largest, products[i].exponent);
  }
  std::int64_t sum = align(start, step.output.mantissa_bits, step.fraction_bits, largest - start.exponent);
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum +=
        align(products[i], 2 * step.input.mantissa_bits, step.fraction_bits, largest - products[i].exponent);
  }
  return round_exact(sum, largest - step.fraction_bits, step);
}

float dot(std::span<const float> a, std::span<const float> b, float c, const TensorCoreStep& step) {
  const auto block = static_cast<std::size_t>(step.products);
  for (std::size_t k = 0; k < a.size(); k += block) {
    const std::size_t count = std::min(block, a.size() - k);
    c = fused_step(a.subspan(k, count), b.subspan(k, count), c, step);
  }
  return c;
}

float fp8_step_on_fp16(std::span<const float> a, std::span<const float> b, float c,
                       const FloatFormat& output) {
  const TensorCoreStep& step = tensor_core_step({TensorCoreGeneration::hopper}, fp16, output);
  float sum = 0;
  for (const std::size_t first : {0u, 2u}) {
    std::array<float, 16> x, y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t k = i / 2 * 4 + first + i % 2;
      x[i] = a[k];
      y[i] = b[k];
    }
    sum = fused_step(x, y, sum, step);
  }
  const float result = round(sum + c, {.format = output});
  return std::isnan(result) ? canonical_nan(output) : result;
}

}  // namespace halfscope
