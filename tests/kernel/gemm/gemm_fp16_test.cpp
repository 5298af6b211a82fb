// Matrix products whose sums are rounded to FP16: overflows, ties, and one rounding or two.
#include <array>
#include <cmath>
#include <utility>

#include <halfscope/core/random.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/matrix_products.hpp"

namespace halfscope::gemm_fp16_test {
namespace {

TEST_CASE("FP16 sums that pass 2^15 or overflow on their way are the definition's", "[gemm]") {
  // Columns: to 2^15 and back; to infinity; past the largest number, but not when rounded; a product that
  // overflows against a sum that would bring it back; a product that comes to zero, and its sign.
  const std::vector<std::vector<float>> columns{
      {0x1p14f, 0x1p14f, 1, -0x1p15f}, {0x1p15f, 0x1p15f, -0x1p15f, -1},  {65504, 15, 1, -65504},
      {-0x1p15f, 0x1p16f, -1, 0},      {-0x1p-26f, -0.0f, -0x1p-26f, -0}, {1, 0x1p-11f, 0x1p-10f, -0x1p-25f}};
  const Extents extents{21, 45, 4};
  std::vector<float> b(size_of(extents.depth, extents.columns));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = columns[i % 45 % columns.size()][i / 45];
  for (const float a : {1.0f, -1.0f, 0.5f}) {
    const Operands operands{std::vector<float>(size_of(extents.rows, extents.depth), a), b};
    for (const char* name : {"fp16_sequential", "fp16_chunked(3)", "fp16_fused", "tensor_core(hopper)"}) {
      check_products(operands, extents, parse_accumulate_model(name));
    }
  }
}

TEST_CASE("one rounding is not two", "[gemm][fused][known]") {
  // 1 + 2^-10 squared is 1 + 2^-9 + 2^-20; less 1 + 2^-9, only a fused operation keeps 2^-20.
  const std::vector<float> a{1, 1 + 0x1p-10f}, b{-(1 + 0x1p-9f), 1 + 0x1p-10f};
  CHECK(accumulate_products(a, b, parse_accumulate_model("fp16_fused")) == 0x1p-20f);
  CHECK(accumulate_products(a, b, parse_accumulate_model("fp16_sequential")) == 0);
  CHECK_THROWS_AS(parse_accumulate_model("e7m22_fused"), InvalidArgument);
  CHECK_THROWS_AS(accumulate(a, parse_accumulate_model("fp16_fused")), InvalidArgument);
}

/// Numbers with few significand bits, or all of them, of sizes from 2^lowest to 2^highest: their sums meet
/// ties, powers of two and zero all the time.
std::vector<float> round_numbers(std::size_t count, int lowest, int highest, std::uint64_t seed) {
  constexpr std::array significands{1.0f, 1.5f, 1 + 0x1p-10f, 2 - 0x1p-10f, 1 + 0x1p-5f, 1.25f};
  const RandomStream stream{.seed = seed};
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = stream.bits(i);
    const int exponent =
        lowest + static_cast<int>((bits >> 8) % static_cast<std::uint32_t>(highest - lowest + 1));
    const float magnitude = std::ldexp(significands[bits % significands.size()], exponent);
    values[i] = bits >> 31 != 0 ? -magnitude : magnitude;
  }
  return values;
}

TEST_CASE("FP16 sums that meet ties, powers of two and subnormal numbers are the definition's",
          "[gemm][fused]") {
  const Extents extents{61, 75, 40};
  const std::size_t a = size_of(extents.rows, extents.depth), b = size_of(extents.depth, extents.columns);
  // Sums of ordinary size, tiny next to large ones, subnormal ones, and up to overflow.
  for (const auto& [lowest, highest] : {std::pair{-1, 1}, {-8, 4}, {-12, 0}, {-14, -5}, {-3, 8}}) {
    for (const char* name : {"fp16_sequential", "fp16_fused", "fp16_chunked(7)"}) {
      check_products({round_numbers(a, lowest, highest, 1), round_numbers(b, lowest, highest, 2)}, extents,
                     parse_accumulate_model(name));
    }
  }
}

TEST_CASE("a fused sum close to a tie falls on its own side", "[gemm][fused][known]") {
  // 1 + 2^-11 is halfway between 1 and 1 + 2^-10; a product of 2^-40 or of -2^-40 decides, however small the
  // sum before it was, and where nothing does the even neighbour is taken.
  const AccumulateModel fused = parse_accumulate_model("fp16_fused");
  const float tiny = 0x1p-20f;
  for (const float sign : {1.0f, -1.0f}) {
    const std::vector<float> a{sign * 0x1p-10f, 1 + 0x1p-5f}, b{0x1p-14f, sign * (1 - 0x1p-6f)};
    check_products({a, b}, {1, 1, 2}, fused);
    for (const float last : {tiny, -tiny, 0.0f}) {
      const Operands operands{{sign, sign * 0x1p-11f, last}, {1, 1, tiny}};
      check_products(operands, {1, 1, 3}, fused);
    }
  }
  // 1.5 + 1.5 * 2^-10 is halfway, its even neighbour lies above.
  CHECK(accumulate_products(std::vector<float>{-0x1p-24f, 1.5f}, std::vector<float>{1, 1 + 0x1p-10f},
                            fused) == 1.5f + 0x1p-10f);
}

}  // namespace
}  // namespace halfscope::gemm_fp16_test
