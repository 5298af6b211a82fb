// The block-scaled tensor cores in integers.
#include <halfscope/arithmetic/block_dot.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include <halfscope/arithmetic/detail/fused_step.hpp>
#include <halfscope/format/encoding.hpp>

namespace halfscope {
namespace {

constexpr std::array elements_of_mxf8f6f4{fp8_e4m3, fp8_e5m2, fp6_e3m2, fp6_e2m3, fp4_e2m1};
constexpr std::size_t terms_per_step = 32;

bool takes(const BlockScaledUnit& unit, const FloatFormat& element) {
  if (unit.kind != BlockScaledKind::mxf8f6f4) return element == fp4_e2m1;
  return std::ranges::find(elements_of_mxf8f6f4, element) != elements_of_mxf8f6f4.end();
}

void check_operand(const BlockOperand& x, const BlockScaledUnit& unit) {
  check_block_elements(x.element, unit);
  const auto block = static_cast<std::size_t>(unit.block);
  const std::size_t blocks = (x.elements.size() + block - 1) / block;
  if (x.scales.size() != blocks) {
    throw InvalidArgument(fmt::format("block_dot: {} elements in blocks of {} have {} scales; {} given",
                                      x.elements.size(), unit.block, blocks, x.scales.size()));
  }
}

/// The fraction bits of a scale's significand.
int scale_bits(const BlockScaledUnit& unit) {
  return unit.scale == ScaleFormat::ue4m3 ? ue4m3.mantissa_bits : 0;
}

detail::Decoded decode_scale_of(std::uint32_t code, ScaleFormat scale) {
  if (scale == ScaleFormat::ue4m3) return detail::decode(decode(code, ue4m3), ue4m3);
  return {1, static_cast<int>(code & 0xFFu) - static_cast<int>(e8m0::bias)};
}

bool is_nan_scale(std::uint32_t code, ScaleFormat scale) {
  return scale == ScaleFormat::ue4m3 ? (code & 0x7Fu) == 0x7Fu : (code & 0xFFu) == e8m0::nan_code;
}

/// Both operands, and the unit that multiplies them.
struct ScaledProducts {
  const BlockOperand &a, &b;
  const BlockScaledUnit& unit;

  [[nodiscard]] float element_of_a(std::size_t k) const { return decode(a.elements[k], a.element); }
  [[nodiscard]] float element_of_b(std::size_t k) const { return decode(b.elements[k], b.element); }
  [[nodiscard]] std::size_t block_of(std::size_t k) const { return k / static_cast<std::size_t>(unit.block); }

  [[nodiscard]] detail::Decoded scale(std::size_t k) const {
    return detail::multiply(decode_scale_of(a.scales[block_of(k)], unit.scale),
                            decode_scale_of(b.scales[block_of(k)], unit.scale));
  }
  [[nodiscard]] detail::Decoded product(std::size_t k) const {
    return detail::multiply(detail::decode(element_of_a(k), a.element),
                            detail::decode(element_of_b(k), b.element));
  }
  [[nodiscard]] int fraction_bits() const {
    return a.element.mantissa_bits + b.element.mantissa_bits + 2 * scale_bits(unit);
  }

  void see(std::size_t k, detail::Exceptions& specials) const {
    const std::size_t block = block_of(k);
    specials.nan |= is_nan_scale(a.scales[block], unit.scale) || is_nan_scale(b.scales[block], unit.scale);
    const float x = element_of_a(k), y = element_of_b(k);
    if (!std::isfinite(x) || !std::isfinite(y)) specials.see(x * y);
  }

  /// The term of the products [first, end), which is one group.
  [[nodiscard]] detail::Decoded term(std::size_t first, std::size_t end) const {
    detail::Decoded sum = scale(first);
    std::int64_t significand = 0;
    bool any = false;
    for (std::size_t k = first; k < end; ++k) {
      const detail::Decoded one = product(k);
      any |= one.significand != 0;
      if (unit.group == 1) sum.exponent += one.exponent;
      // FP4's exponents are 0 to 2.
      significand += unit.group == 1 ? one.significand : one.significand * (std::int64_t{1} << one.exponent);
    }
    if (!any || sum.significand == 0) return {0, unit.zero_exponent};
    sum.significand *= significand;
    return sum;
  }
};

float block_step(const ScaledProducts& x, std::size_t first, std::size_t end, float c) {
  detail::Exceptions specials;
  specials.see(c);
  for (std::size_t k = first; k < end; ++k) x.see(k, specials);
  if (specials.any()) return specials.result(fp32);
  detail::Decoded start = detail::decode(c, fp32);
  if (start.significand == 0) start.exponent = x.unit.zero_exponent;
  int largest = start.exponent;
  std::array<detail::Decoded, terms_per_step> terms{};
  std::size_t count = 0;
  const auto group = static_cast<std::size_t>(x.unit.group);
  for (std::size_t k = first; k < end; k += group) {
    terms[count] = x.term(k, std::min(k + group, end));
    largest = std::max(largest, terms[count++].exponent);
  }
  const int bits = x.unit.fraction_bits, lift = bits - x.fraction_bits();
  std::int64_t sum = detail::align(start.significand, bits - fp32.mantissa_bits, largest - start.exponent);
  for (std::size_t i = 0; i < count; ++i)
    sum += detail::align(terms[i].significand, lift, largest - terms[i].exponent);
  return detail::round_sum(sum, largest - bits, {.input = x.a.element, .output = fp32});
}

/// Throws InvalidArgument where the unit does not take numbers of `format`.
const BlockScaledUnit& unit_for(BlockScaledKind kind, const BlockFormat& format) {
  const BlockScaledUnit& unit = block_scaled_unit(kind, format.scale());
  check_block_elements(format.element.format, unit);
  if (format.block.columns % unit.block == 0) return unit;
  throw InvalidArgument(fmt::format(
      "the unit {0} has a scale for each {1} elements of a row, {2} one for {3} x {4}; give blocks whose "
      "columns are a multiple of {1}",
      name_of(kind), unit.block, to_string(format), format.block.rows, format.block.columns));
}

}  // namespace

void check_block_elements(const FloatFormat& element, const BlockScaledUnit& unit) {
  if (takes(unit, element)) return;
  throw InvalidArgument(fmt::format(
      "the unit {} takes no elements of {}; {}", name_of(unit.kind), to_string(element),
      unit.kind == BlockScaledKind::mxf8f6f4 ? "give fp8_e4m3, fp8_e5m2, fp6_e3m2, fp6_e2m3 or fp4_e2m1"
                                             : "give fp4_e2m1"));
}

const BlockScaledUnit& block_scaled_unit(BlockScaledKind kind, ScaleFormat scale) {
  std::string scales;
  for (const BlockScaledUnit& unit : block_scaled_units) {
    if (unit.kind != kind) continue;
    if (unit.scale == scale) return unit;
    scales += (scales.empty() ? "" : " or ") + std::string(name_of(unit.scale));
  }
  throw InvalidArgument(
      fmt::format("the unit {} has no scales of {}; give {}", name_of(kind), name_of(scale), scales));
}

const BlockScaledUnit& block_scaled_unit(BlockScaledKind kind, const BlockFormat& a, const BlockFormat& b) {
  const BlockScaledUnit& unit = unit_for(kind, a);
  if (&unit_for(kind, b) == &unit) return unit;
  throw InvalidArgument(fmt::format("the unit {} takes scales of one format; {} and {} have two",
                                    name_of(kind), to_string(a), to_string(b)));
}

float block_dot(const BlockOperand& a, const BlockOperand& b, float c, const BlockScaledUnit& unit) {
  if (a.elements.size() != b.elements.size()) {
    throw InvalidArgument(fmt::format("block_dot: {} elements times {}; give as many of both",
                                      a.elements.size(), b.elements.size()));
  }
  check_operand(a, unit);
  check_operand(b, unit);
  const auto products = static_cast<std::size_t>(unit.products);
  for (std::size_t k = 0; k < a.elements.size(); k += products)
    c = block_step({a, b, unit}, k, std::min(k + products, a.elements.size()), c);
  return c;
}

}  // namespace halfscope
