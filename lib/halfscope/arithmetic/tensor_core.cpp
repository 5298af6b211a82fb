// The tensor-core models: steps by name, and dot products made of them.
#include <halfscope/arithmetic/tensor_core.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <halfscope/arithmetic/detail/fused_step.hpp>
#include <halfscope/format/round.hpp>

namespace halfscope {
namespace {

constexpr std::size_t most_products = 64;

/// The operands of a step in memory.
struct Operands {
  std::span<const float> x, y;
  [[nodiscard]] float a(int i) const { return x[static_cast<std::size_t>(i)]; }
  [[nodiscard]] float b(int i) const { return y[static_cast<std::size_t>(i)]; }
};

}  // namespace

const TensorCoreStep& tensor_core_step(const TensorCore& core, const FloatFormat& input,
                                       const FloatFormat& output) {
  for (const TensorCoreEntry& entry : tensor_core_table) {
    const TensorCoreStep& step = entry.step;
    if (entry.generation == core.generation && step.input == input && step.output == output) return step;
  }
  throw InvalidArgument(fmt::format("the {} tensor core has no products of {} that add up in {}",
                                    name_of(core.generation), to_string(input), to_string(output)));
}

float fused_step(std::span<const float> a, std::span<const float> b, float c, const TensorCoreStep& step) {
  return detail::fused_step<most_products>(Operands{a, b}, static_cast<int>(a.size()), c, step);
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
  return std::isnan(result) ? detail::canonical_nan(output) : result;
}

}  // namespace halfscope
