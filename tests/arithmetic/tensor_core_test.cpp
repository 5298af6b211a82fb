// The tensor-core models: worked examples, special values, zeros, subnormal numbers, and shorter last blocks.
#include <halfscope/arithmetic/tensor_core.hpp>
#include <halfscope/format/bits.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::tensor_core_test {
namespace {

using enum TensorCoreGeneration;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TensorCoreStep step_of(TensorCoreGeneration generation, const FloatFormat& output = fp32) {
  return tensor_core_step({generation}, fp16, output);
}

/// c + the sum of the products a[i] * 1.
float sum_of(std::vector<float> a, float c, const TensorCoreStep& step) {
  return dot(a, std::vector<float>(a.size(), 1.0f), c, step);
}

TEST_CASE("the bits below the largest exponent tell the generations apart", "[tensor_core][known]") {
  // 2^23 - 2^23 - 0.5 - 0.25 - 0.125: exactly -0.875. Published in arXiv 2511.10909, table 8.
  const std::vector<float> a{-4096.0f, -0.5f, -0.25f, -0.125f}, b{2048.0f, 1.0f, 1.0f, 1.0f};
  const float expected[] = {0.0f, -0.5f, -0.5f, -0.5f, -0.75f, -0.75f};
  for (std::size_t g = 0; g < enum_names<TensorCoreGeneration>.size(); ++g) {
    INFO(enum_names<TensorCoreGeneration>[g]);
    CHECK(dot(a, b, 0x1p23f, step_of(static_cast<TensorCoreGeneration>(g))) == expected[g]);
  }
}

TEST_CASE("sums are cut off in FP32 and rounded to nearest even in FP16", "[tensor_core][known]") {
  const TensorCoreStep& single = step_of(hopper);
  CHECK(to_bits(dot(std::vector{0x1p-12f}, std::vector{0x1p-12f}, 1.0f, single)) == 0x3f800000u);
  CHECK(to_bits(dot(std::vector{-0x1p-12f}, std::vector{0x1p-12f}, 1.0f, single)) == 0x3f7fffffu);
  const TensorCoreStep& half = step_of(hopper, fp16);
  CHECK(dot(std::vector{0x1p-13f, 0x1p-13f}, std::vector{0x1p-12f, 0x1p-13f}, 0.0f, half) == 0x1p-24f);
  CHECK(sum_of({0x1p-11f}, 1.0f, half) == 1.0f);
  CHECK(sum_of({0x1p-11f}, 1.0f + 0x1p-10f, half) == 1.0f + 0x1p-9f);
}

TEST_CASE("in FP16 sums a zero counts as 4 - the bits kept", "[tensor_core][known]") {
  // 2^-25 is a tie, which a bit 18, 20 or 22 places below decides: cut off beside a zero, it rounds to zero.
  constexpr float last_kept[] = {0x1p-42f, 0x1p-44f, 0x1p-44f, 0x1p-44f, 0x1p-46f, 0x1p-46f};
  for (std::size_t g = 0; g < enum_names<TensorCoreGeneration>.size(); ++g) {
    const TensorCoreStep& half = step_of(static_cast<TensorCoreGeneration>(g), fp16);
    INFO(enum_names<TensorCoreGeneration>[g]);
    const auto beside_zero = [&](float second, const TensorCoreStep& step) {
      return dot(std::vector{0x1p-13f, second * 0x1p24f}, std::vector{0x1p-12f, 0x1p-24f}, 0.0f, step);
    };
    CHECK(half.zero_exponent == 4 - half.fraction_bits);
    CHECK(beside_zero(last_kept[g], half) == 0x1p-24f);
    CHECK(beside_zero(last_kept[g] / 2, half) == 0.0f);
    TensorCoreStep lower_zero = half;
    --lower_zero.zero_exponent;
    CHECK(beside_zero(last_kept[g] / 2, lower_zero) == 0x1p-24f);
  }
}

TEST_CASE("a negative sum that rounds to zero is a positive zero", "[tensor_core][known]") {
  const std::vector<float> a{-0x1p-14f}, b{0x1p-12f};
  CHECK(to_bits(dot(a, b, 0.0f, step_of(hopper, fp16))) == 0u);
  const TensorCoreStep& wide = tensor_core_step({hopper}, bf16, fp32);
  CHECK(to_bits(dot(std::vector{-0x1p-100f}, std::vector{0x1p-100f}, 0.0f, wide)) == 0u);
}

TEST_CASE("special values give infinity or the one NaN", "[tensor_core]") {
  for (const FloatFormat& output : {fp32, fp16}) {
    const std::uint32_t one_nan = output == fp16 ? 0x7FFFE000u : 0x7FFFFFFFu;
    for (std::size_t g = 0; g < enum_names<TensorCoreGeneration>.size(); ++g) {
      const TensorCoreStep& step = step_of(static_cast<TensorCoreGeneration>(g), output);
      const auto block = [&](std::vector<float> a, std::vector<float> b, float c) {
        return to_bits(dot(a, b, c, step));
      };
      INFO(enum_names<TensorCoreGeneration>[g]);
      CHECK(block({nan, 1}, {0, 1}, 1) == one_nan);
      CHECK(block({1, 1}, {1, -nan}, 1) == one_nan);
      CHECK(block({1}, {1}, -nan) == one_nan);
      CHECK(block({infinity}, {0}, 0) == one_nan);
      CHECK(block({0, 1}, {-infinity, 1}, 0) == one_nan);
      CHECK(block({infinity, -infinity}, {1, 1}, 0) == one_nan);
      CHECK(block({infinity}, {1}, -infinity) == one_nan);
      CHECK(block({infinity, 2}, {-1, 3}, 5) == 0xFF800000u);
      CHECK(block({infinity, -infinity}, {1, -1}, infinity) == 0x7F800000u);
      CHECK(block({1}, {1}, -infinity) == 0xFF800000u);
    }
  }
}

TEST_CASE("finite sums overflow to infinity although they are cut off", "[tensor_core]") {
  const float largest = std::numeric_limits<float>::max();
  const std::vector<float> a{0x1p127f, 0x1p100f}, one{1.0f, 1.0f};
  const TensorCoreStep& step = tensor_core_step({hopper}, bf16, fp32);
  CHECK(dot(a, one, largest, step) == infinity);
  CHECK(dot(std::vector{-0x1p127f, -0x1p127f}, one, 0.0f, step) == -infinity);
  CHECK(dot(std::vector{0x1p102f}, std::vector{1.0f}, largest, step) == largest);  // below 2^128: cut off
  CHECK(dot(std::vector{0x1p127f}, std::vector{0x1p127f}, 0.0f, step) == infinity);
  // Where the first block overflows, a later one of the other sign makes a NaN of it.
  std::vector<float> chain(32, 0.0f);
  chain[0] = chain[1] = 0x1p127f;
  chain[16] = -infinity;
  CHECK(to_bits(dot(chain, std::vector<float>(32, 1.0f), 0.0f, step)) == 0x7FFFFFFFu);
  CHECK(sum_of({65504.0f, 8.0f}, 0.0f, step_of(hopper, fp16)) == 65504.0f);
  CHECK(sum_of({65504.0f, 16.0f}, 0.0f, step_of(hopper, fp16)) == infinity);
}

TEST_CASE("zero products hide nothing, and an exact zero is positive", "[tensor_core]") {
  for (const TensorCoreEntry& entry : tensor_core_table) {
    const TensorCoreStep& step = entry.step;
    INFO(name_of(entry.generation) << ' ' << to_string(step.input) << ' ' << to_string(step.output));
    // A zero times the largest number must not raise the exponent that the others are aligned to.
    CHECK(dot(std::vector{0.0f, 0.125f}, std::vector{448.0f, 0.125f}, 0.0f, step) == 0x1p-6f);
    CHECK(to_bits(dot(std::vector{1.0f, -1.0f}, std::vector{1.0f, 1.0f}, 0.0f, step)) == 0u);
    CHECK(to_bits(dot(std::vector{-0.0f}, std::vector{1.0f}, -0.0f, step)) == 0u);
  }
  CHECK(sum_of({0.0f}, 0x1p-149f, step_of(hopper)) == 0x1p-149f);
}

TEST_CASE("subnormal operands, accumulators and results are exact", "[tensor_core]") {
  const TensorCoreStep& single = step_of(hopper);
  CHECK(dot(std::vector{0x1p-24f}, std::vector{0x1p-24f}, 0.0f, single) == 0x1p-48f);
  CHECK(dot(std::vector{0x1p-24f}, std::vector{65504.0f}, 0.0f, single) == 65504 * 0x1p-24f);
  CHECK(sum_of({3 * 0x1p-24f}, 5 * 0x1p-24f, step_of(hopper, fp16)) == 0x1p-21f);
  const TensorCoreStep& wide = tensor_core_step({hopper}, bf16, fp32);
  CHECK(dot(std::vector{0x1p-133f}, std::vector{1.0f}, 0x1p-149f, wide) == 0x1p-133f + 0x1p-149f);
  CHECK(dot(std::vector{-0x1p-100f}, std::vector{0x1p-100f}, 0.0f, wide) == 0.0f);
}

TEST_CASE("blocks are taken in ascending order and the last may be shorter", "[tensor_core]") {
  for (const TensorCoreEntry& entry : tensor_core_table) {
    const TensorCoreStep& step = entry.step;
    const auto block = static_cast<std::size_t>(step.products);
    std::vector<float> a = uniform_floats(5 * block + 3, -1, 1, 1), b = uniform_floats(a.size(), -1, 1, 2);
    for (auto* values : {&a, &b}) {
      for (float& x : *values) x = std::round(x * 4) / 4;
    }
    float expected = 0.25f;
    for (std::size_t k = 0; k < a.size(); k += block) {
      const std::size_t count = std::min(block, a.size() - k);
      expected = fused_step(std::span(a).subspan(k, count), std::span(b).subspan(k, count), expected, step);
    }
    CHECK(dot(a, b, 0.25f, step) == expected);
  }
  CHECK(dot({}, {}, 3.0f, step_of(volta)) == 3.0f);
  // Eight products at once keep what two blocks of four cut off.
  std::vector<float> a{0x1p-12f, 0, 0, 0, -1, 0, 0, 0}, b{0x1p-12f, 0, 0, 0, 1, 0, 0, 0};
  CHECK(dot(a, b, 1.0f, step_of(volta)) == 0.0f);
  CHECK(dot(a, b, 1.0f, step_of(turing)) == 0x1p-24f);
}

TEST_CASE("FP8 on the FP16 tensor core adds c last, in IEEE arithmetic", "[tensor_core]") {
  std::vector<float> a(32, 0.0f), b(32, 1.0f);
  a[0] = 448.0f;
  a[2] = -448.0f;
  a[3] = 0.015625f;
  // 448 first, then -448 + 2^-6, exact: a step of all 32 with 13 bits would have lost the 2^-6.
  CHECK(fp8_step_on_fp16(a, b, 0.0f, fp16) == 0.015625f);
  CHECK(dot(a, b, 0.0f, tensor_core_step({hopper}, fp8_e4m3, fp32)) == 0.0f);
  CHECK(fp8_step_on_fp16(a, b, 32.0f, fp16) == 32.0f);  // half an ulp of 32: a tie, to even
  CHECK(to_bits(fp8_step_on_fp16(a, b, nan, fp16)) == 0x7FFFE000u);
}

TEST_CASE("a tensor core without the formats is refused", "[tensor_core]") {
  CHECK(message_of<InvalidArgument>([] { (void)tensor_core_step({volta}, bf16, fp32); }) ==
        "the volta tensor core has no products of bf16 that add up in fp32");
}

}  // namespace
}  // namespace halfscope::tensor_core_test
