// Block-scaled dot products: known answers, short operands, and what is refused.
#include <halfscope/arithmetic/block_dot.hpp>
#include <halfscope/format/bits.hpp>

#include <limits>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::block_dot_test {
namespace {

using enum BlockScaledKind;
using Codes = std::vector<std::uint8_t>;
using Scales = std::vector<std::uint32_t>;

const BlockScaledUnit& mxfp8 = block_scaled_unit(mxf8f6f4, ScaleFormat::e8m0);
const BlockScaledUnit& mxfp4 = block_scaled_unit(mxf4, ScaleFormat::e8m0);
const BlockScaledUnit& nvfp4 = block_scaled_unit(mxf4nvf4, ScaleFormat::ue4m3);

/// `count` codes from `first` on, all else zeros.
Codes codes(std::size_t size, std::size_t first, std::size_t count, std::uint8_t code) {
  Codes all(size);
  for (std::size_t k = first; k < first + count; ++k) all[k] = code;
  return all;
}

struct Matrices {
  Codes a, b;
  Scales alpha, beta;
  std::uint32_t c = 0;
};

std::uint32_t bits_of(const Matrices& x, const FloatFormat& element, const BlockScaledUnit& unit) {
  return to_bits(block_dot({element, x.a, x.alpha}, {element, x.b, x.beta}, from_bits(x.c), unit));
}

/// `count` products of two codes.
Matrices e4m3_products(std::size_t count, std::uint8_t a, std::uint8_t b, Scales scales,
                       std::uint32_t c = 0) {
  return {codes(32, 0, count, a), codes(32, 0, count, b), {scales[0]}, {scales[1]}, c};
}

TEST_CASE("a scale moves its products, and what lies 25 bits below is cut off", "[block_dot][known]") {
  const auto result = [](const Matrices& x) { return bits_of(x, fp8_e4m3, mxfp8); };
  CHECK(result(e4m3_products(1, 0x38, 0x38, {0x67, 0x7F}, 0x3F800000u)) == 0x3F800000u);  // 1 + 2^-24
  CHECK(result(e4m3_products(1, 0xB8, 0x38, {0x67, 0x7F}, 0x3F800000u)) == 0x3F7FFFFFu);  // 1 - 2^-24
  CHECK(result(e4m3_products(1, 0xB8, 0x38, {0x65, 0x7F}, 0x3F800000u)) == 0x3F800000u);  // 1 - 2^-26
  CHECK(result(e4m3_products(1, 0x3C, 0x38, {0x34, 0x35})) == 1u);
  CHECK(result(e4m3_products(1, 0x38, 0x38, {0xFE, 0xFE})) == 0x7F800000u);
  // Zeros count as 2^-133: what lies below 2^-158 is cut off.
  CHECK(result(e4m3_products(21, 0x3E, 0x3E, {0x2A, 0x39})) == 0u);
  CHECK(result(e4m3_products(25, 0x3C, 0x3E, {0x2A, 0x39})) == 1u);
}

TEST_CASE("the exponent of a group is that of its scales", "[block_dot][known]") {
  Matrices x{codes(64, 0, 1, 2), codes(64, 0, 1, 2), {0xA0, 0x7F}, {0x7F, 0x7F}};
  x.a[32] = 9;  // -0.5 * 0.5
  x.b[32] = 1;
  CHECK(bits_of(x, fp4_e2m1, mxfp4) == 0x4FFFFFFFu);
  x.alpha[0] = 0xA1;
  CHECK(bits_of(x, fp4_e2m1, mxfp4) == 0x50800000u);

  x = {codes(64, 0, 16, 3), codes(64, 0, 16, 3), {0x7E, 0x01, 0, 0}, {0x7E, 0x01, 0, 0}};
  x.a[16] = 9;
  x.b[16] = 2;
  CHECK(bits_of(x, fp4_e2m1, nvfp4) == 0x4ADC7FFFu);
  x.b[16] = 1;
  CHECK(bits_of(x, fp4_e2m1, nvfp4) == 0x4ADC8000u);
}

TEST_CASE("scales of NVFP4 have no sign, and a NaN scale is NaN over zeros", "[block_dot][known]") {
  const Scales ones(4, 0x38);
  Matrices x{codes(64, 0, 64, 7), codes(64, 0, 64, 7), ones, ones};
  CHECK(bits_of(x, fp4_e2m1, nvfp4) == to_bits(64 * 36.0f));
  x.alpha[2] = 0xB8;
  CHECK(bits_of(x, fp4_e2m1, nvfp4) == to_bits(64 * 36.0f));
  x = {codes(64, 0, 1, 1), codes(64, 0, 1, 1), {1, 0, 0, 0}, {1, 0, 0, 0}};
  CHECK(bits_of(x, fp4_e2m1, nvfp4) == to_bits(0x1p-20f));
  x.beta[3] = 0x7F;
  CHECK(bits_of(x, fp4_e2m1, nvfp4) == 0x7FFFFFFFu);
  CHECK(bits_of(e4m3_products(0, 0, 0, {0xFF, 0x7F}), fp8_e4m3, mxfp8) == 0x7FFFFFFFu);
}

TEST_CASE("operands end anywhere, and steps follow each other", "[block_dot]") {
  // 40 products of 1 in steps of 32; the last block is short.
  const Matrices x{Codes(40, 0x38), Codes(40, 0x38), {0x7F, 0x80}, {0x7F, 0x7F}, to_bits(0.5f)};
  CHECK(bits_of(x, fp8_e4m3, mxfp8) == to_bits(0.5f + 32 + 8 * 2));
  CHECK(bits_of({{}, {}, {}, {}, to_bits(3.0f)}, fp8_e4m3, mxfp8) == to_bits(3.0f));
  // The first step overflows; the second one's infinity has the other sign.
  Matrices chain{Codes(64), Codes(64, 0x3C), {0xFE, 0x7F}, {0xFE, 0x7F}};
  chain.a[0] = 0x3C;
  chain.a[32] = 0xFC;  // -infinity in E5M2
  CHECK(bits_of(chain, fp8_e5m2, mxfp8) == 0x7FFFFFFFu);
}

TEST_CASE("elements of two formats may be multiplied", "[block_dot]") {
  const Codes a{0x40}, b{0x05};  // 2 in E4M3, 3 in E2M1
  const Scales one{0x7F};
  CHECK(block_dot({fp8_e4m3, a, one}, {fp4_e2m1, b, one}, 1.0f, mxfp8) == 7.0f);
}

TEST_CASE("operands that a unit does not take are refused", "[block_dot]") {
  const Codes elements(33);
  const Scales scales(2, 0x7F);
  const auto message = [](const BlockOperand& a, const BlockOperand& b, const BlockScaledUnit& unit) {
    return message_of<InvalidArgument>([&] { (void)block_dot(a, b, 0, unit); });
  };
  const BlockOperand right{fp8_e4m3, elements, scales};
  check_says(message(right, {fp8_e4m3, std::span(elements).first(32), scales}, mxfp8), {"33", "32"});
  check_says(message({fp8_e4m3, elements, std::span(scales).first(1)}, right, mxfp8),
             {"2 scales", "1 given"});
  check_says(message({e4m3, elements, scales}, right, mxfp8), {"e4m3", "fp8_e4m3"});
  check_says(message(right, right, nvfp4), {"mxf4nvf4", "give fp4_e2m1"});
  check_says(message_of<InvalidArgument>([] { (void)block_scaled_unit(mxf4, ScaleFormat::ue4m3); }),
             {"mxf4", "ue4m3", "give e8m0"});
}

TEST_CASE("a promoted sum takes the scales of its terms", "[block_dot][known]") {
  const TensorCoreStep& step = tensor_core_step({TensorCoreGeneration::hopper}, fp8_e4m3, fp32);
  const std::vector<float> ones(48, 1), two{2, 4}, three{3, 0.5f};
  CHECK(promoted_dot({ones, two}, {ones, three}, 1, step, {.terms = 32}) == 1 + 6 * 32 + 2 * 16);
  CHECK(promoted_dot({ones}, {ones, three}, 0, step, {.terms = 32}) == 3 * 32 + 0.5f * 16);
  // (1 + 2^-23) (1 + 2^-3) has a bit that a product of its own loses.
  const std::vector<float> term{1.125f}, one{1}, scale{1 + 0x1p-23f};
  CHECK(promoted_dot({term, scale}, {one}, -1.125f, step, {}) == 0x1.2p-23f);
  CHECK(promoted_dot({term, scale}, {one}, -1.125f, step, {.add = ScaledAdd::separate}) == 0x1p-23f);
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(to_bits(promoted_dot({one, {&infinity, 1}}, {one}, -infinity, step, {})) == 0x7FFFFFFFu);
}

TEST_CASE("promotions that do not fit are refused", "[block_dot]") {
  const TensorCoreStep& step = tensor_core_step({TensorCoreGeneration::hopper}, fp8_e4m3, fp32);
  const std::vector<float> ones(129, 1), scales{1};
  const auto message = [&](const ScaledTerms& a, const TensorCoreStep& with, int terms) {
    return message_of<InvalidArgument>([&] { (void)promoted_dot(a, {ones}, 0, with, {.terms = terms}); });
  };
  check_says(message({ones, scales}, step, 128), {"129 terms", "2 scales", "1 given"});
  check_says(message({scales}, step, 128), {"1 terms times 129"});
  check_says(message({ones}, step, 100), {"100", "multiple of the 32"});
  const TensorCoreStep& half = tensor_core_step({TensorCoreGeneration::hopper}, fp8_e4m3, fp16);
  check_says(message({ones}, half, 128), {"FP32", "fp16"});
}

}  // namespace
}  // namespace halfscope::block_dot_test
