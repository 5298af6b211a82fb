// The tensor-core models: steps by name, and dot products made of them.
#include <halfscope/arithmetic/tensor_core.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <halfscope/arithmetic/detail/fused_step.hpp>
#include <halfscope/core/detail/equal_sizes.hpp>
#include <halfscope/format/round.hpp>

namespace halfscope {
namespace {

constexpr std::size_t most_products = 64;
/// 64 products of 24-bit numbers, aligned to so many bits, add up in 64 bits.
constexpr int most_fraction_bits = 48;
constexpr int least_zero_exponent = -300, largest_zero_exponent = 127;

/// The operands of a step in memory.
struct Operands {
  std::span<const float> x, y;
  [[nodiscard]] float a(int i) const { return x[static_cast<std::size_t>(i)]; }
  [[nodiscard]] float b(int i) const { return y[static_cast<std::size_t>(i)]; }
};

void check_range(std::string_view what, int value, int least, int most) {
  if (value >= least && value <= most) return;
  throw InvalidArgument(
      fmt::format("a tensor core's {} lie between {} and {}, not {}", what, least, most, value));
}

void check_products(int products) {
  check_range("products", products, 1, static_cast<int>(most_products));
}

/// The step of operands whose sizes were checked.
float step_of(const Operands& operands, float c, const TensorCoreStep& step) {
  return detail::fused_step<most_products>(operands, static_cast<int>(operands.x.size()), c, step);
}

TensorCoreStep free_step(const TensorCore& core, const FloatFormat& input, const FloatFormat& output) {
  const TensorCoreConstants& own = core.constants;
  check_products(own.products);
  check_range("bits", own.fraction_bits, 1, most_fraction_bits);
  check_range("zero exponents", own.zero_exponent, least_zero_exponent, largest_zero_exponent);
  const FloatFormat& result = own.result;
  const bool is_ieee = result.specials == Specials::ieee && result.sign == SignBit::present &&
                       result.subnormals == Subnormals::gradual && result.bias_offset == 0;
  if (!is_ieee) {
    throw InvalidArgument(
        "a tensor core's result is a format with IEEE 754's specials, as fp32, fp16 or e8m13, not " +
        to_string(result));
  }
  if (own.rounding != Rounding::toward_zero && own.rounding != Rounding::nearest_even) {
    throw InvalidArgument(fmt::format("a tensor core's result is rounded toward_zero or nearest_even, not {}",
                                      name_of(own.rounding)));
  }
  if (output != core.output()) {
    throw InvalidArgument(fmt::format("a tensor core with results in {} adds up in {}, not in {}",
                                      to_string(result), to_string(core.output()), to_string(output)));
  }
  return {input, output, own.products, own.fraction_bits, own.zero_exponent, result, own.rounding};
}

}  // namespace

TensorCoreStep tensor_core_step(const TensorCore& core, const FloatFormat& input, const FloatFormat& output) {
  if (core.is_free()) return free_step(core, input, output);
  for (const TensorCoreEntry& entry : tensor_core_table) {
    const TensorCoreStep& step = entry.step;
    if (entry.generation == core.generation && step.input == input && step.output == output) return step;
  }
  throw InvalidArgument(fmt::format("the {} tensor core has no products of {} that add up in {}",
                                    name_of(core.generation), to_string(input), to_string(output)));
}

float fused_step(std::span<const float> a, std::span<const float> b, float c, const TensorCoreStep& step) {
  detail::check_equal_sizes("fused_step", a.size(), b.size());
  check_products(step.products);
  if (a.size() > static_cast<std::size_t>(step.products)) {
    throw InvalidArgument(fmt::format("fused_step: {} products; a step adds {} at most, and dot any number",
                                      a.size(), step.products));
  }
  return step_of({a, b}, c, step);
}

float dot(std::span<const float> a, std::span<const float> b, float c, const TensorCoreStep& step) {
  detail::check_equal_sizes("dot", a.size(), b.size());
  check_products(step.products);
  const auto block = static_cast<std::size_t>(step.products);
  for (std::size_t k = 0; k < a.size(); k += block) {
    const std::size_t count = std::min(block, a.size() - k);
    c = step_of({a.subspan(k, count), b.subspan(k, count)}, c, step);
  }
  return c;
}

float fp8_step_on_fp16(std::span<const float> a, std::span<const float> b, float c,
                       const FloatFormat& output) {
  if (a.size() != 32 || b.size() != 32) {
    throw InvalidArgument(
        fmt::format("fp8_step_on_fp16: arrays of {} and {} elements; give 32 of both", a.size(), b.size()));
  }
  const TensorCoreStep& step = tensor_core_step({TensorCoreGeneration::hopper}, fp16, output);
  float sum = 0;
  for (const std::size_t first : {0u, 2u}) {
    std::array<float, 16> x, y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t k = i / 2 * 4 + first + i % 2;
      x[i] = a[k];
      y[i] = b[k];
    }
    sum = step_of({x, y}, sum, step);
  }
  const float result = round(sum + c, {.format = output});
  return std::isnan(result) ? detail::canonical_nan(output) : result;
}

}  // namespace halfscope
