// AMD's matrix cores: known answers, exact sums against double precision, zeros and special values.
#include <halfscope/arithmetic/matrix_core.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/quantizer.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::matrix_core_test {
namespace {

using enum MatrixCoreGeneration;
constexpr float infinity = std::numeric_limits<float>::infinity();

/// Two operands of a product, as codes.
struct Factors {
  std::uint32_t a, b;
};

std::uint32_t bits_of(MatrixCoreGeneration generation, const FloatFormat& input, std::uint32_t c,
                      const std::vector<Factors>& products) {
  std::vector<float> a, b;
  for (const Factors& factors : products) {
    a.push_back(decode(factors.a, input));
    b.push_back(decode(factors.b, input));
  }
  return to_bits(dot(a, b, from_bits(c), matrix_core_step(generation, input)));
}

constexpr std::uint32_t one = 0x3F800000u, minus_one = 0xBF800000u, nan = 0x7FC00000u;

TEST_CASE("CDNA3 keeps 31 bits below the leading one and rounds down", "[matrix_core][known]") {
  CHECK(bits_of(cdna3, fp16, one, {{0x0C00, 0x0C00}, {0x0100, 0x0100}}) == 0x3F800000u);
  CHECK(bits_of(cdna3, fp16, one, {{0x0C00, 0x0C00}, {0x0100, 0x0200}}) == 0x3F800001u);
  CHECK(bits_of(cdna3, fp16, one, {{0x8800, 0x0C00}, {0x8010, 0x0010}}) == 0x3F7FFFFFu);
  CHECK(bits_of(cdna3, fp16, minus_one, {{0x8C00, 0x0C00}, {0x8080, 0x0080}}) == 0xBF800001u);
  CHECK(bits_of(cdna3, fp8_e4m3fnuz, 0x46800000u, {{0xC0, 0x01}}) == 0x467FFFFFu);
  CHECK(bits_of(cdna3, fp8_e4m3fnuz, 0x46800000u, {{0x40, 0x01}}) == 0x46800000u);
}

TEST_CASE("a product of 2^128 is infinite on CDNA3, and exact on CDNA1", "[matrix_core][known]") {
  const std::vector<Factors> large{{0x5F80, 0x5F80}, {0xDF80, 0x5F80}},
      fits{{0x5F80, 0x5F00}, {0xDF80, 0x5F00}};
  CHECK(bits_of(cdna3, bf16, one, large) == nan);
  CHECK(bits_of(cdna3, bf16, one, fits) == 0u);  // 1 is cut off beside 2^127
  CHECK(bits_of(cdna1, bf16, one, large) == one);
  CHECK(bits_of(cdna1, bf16, one, fits) == one);
  CHECK(bits_of(cdna1, bf16, 0, {{0x5F80, 0x5F80}}) == to_bits(infinity));
}

TEST_CASE("CDNA2 has no subnormal numbers", "[matrix_core][known]") {
  CHECK(bits_of(cdna2, fp16, 0, {{0x0001, 0x0001}}) == 0u);
  CHECK(bits_of(cdna2, fp16, 0, {{0x7BFF, 0x7BFF}, {0x0001, 0x0001}}) == 0x4F7FC004u);
  CHECK(bits_of(cdna2, bf16, 0x80000001u, {}) == 0x80000001u);  // no step
  CHECK(bits_of(cdna2, bf16, 0x80000001u, {{0, 0}}) == 0u);
  CHECK(bits_of(cdna2, bf16, 0, {{0x8080, 0x3F00}}) == 0u);  // -2^-127 is -0, plus 0
  CHECK(bits_of(cdna1, bf16, 0, {{0x8080, 0x3F00}}) == 0x80400000u);
}

TEST_CASE("sums of CDNA1 are exact, then rounded once", "[matrix_core]") {
  const MatrixCoreStep& step = matrix_core_step(cdna1, fp16);
  // Multiples of 2^-20 below 2^6: double precision holds the sums.
  std::vector<float> a = uniform_floats(4096, -4, 4, 1), b = uniform_floats(4096, -4, 4, 2);
  for (std::vector<float>* values : {&a, &b}) {
    for (float& value : *values) value = std::round(value * 256) / 256;
  }
  const std::vector<float> c = uniform_floats(1024, -4, 4, 3);
  for (std::size_t i = 0; i < c.size(); ++i) {
    const auto x = std::span(a).subspan(4 * i, 4), y = std::span(b).subspan(4 * i, 4);
    double sum = std::round(static_cast<double>(c[i]) * 0x1p30) / 0x1p30;
    const auto start = static_cast<float>(sum);
    sum = static_cast<double>(start);
    for (std::size_t k = 0; k < 4; ++k) sum += static_cast<double>(x[k]) * static_cast<double>(y[k]);
    CHECK(dot(x, y, start, step) == static_cast<float>(sum));
  }
}

TEST_CASE("a negative sum that rounds to zero keeps its sign on CDNA1 and CDNA3", "[matrix_core][known]") {
  const std::vector<Factors> tiny{{0x8D80, 0x0D80}};  // -2^-100 * 2^-100
  CHECK(bits_of(cdna1, bf16, 0, tiny) == 0x80000000u);
  CHECK(bits_of(cdna3, bf16, 0, {{0x8080, 0x3380}}) == 0x80000000u);  // -2^-126 * 2^-24
  CHECK(bits_of(cdna1, bf16, 0x80000000u, {{0x8000, 0x3F80}}) == 0u);
}

TEST_CASE("special values of matrix cores are IEEE 754's", "[matrix_core]") {
  for (const MatrixCoreStep& step : matrix_core_table) {
    INFO(name_of(step.generation) << ' ' << to_string(step.input));
    const auto result = [&](std::vector<float> a, float c) {
      return to_bits(dot(a, std::vector<float>(a.size(), 1.0f), c, step));
    };
    CHECK(result({1, 1}, infinity) == to_bits(infinity));
    CHECK(result({std::nanf(""), 1}, 1) == nan);
    CHECK(result({1}, -std::nanf("")) == nan);
    if (step.input.has_infinity()) {
      CHECK(result({-infinity, 1}, 1) == to_bits(-infinity));
      CHECK(result({-infinity, 1}, infinity) == nan);
    }
    CHECK(result({1, -1}, 0) == 0u);
    CHECK(result({1.5f, 2, 0.25f}, 4) == to_bits(7.75f));
  }
}

TEST_CASE("a matrix core without the format is refused", "[matrix_core]") {
  CHECK(message_of<InvalidArgument>([] { (void)matrix_core_step(cdna2_1k, fp16); }) ==
        "the cdna2_1k matrix core has no products of fp16; give one of bf16");
}

}  // namespace
}  // namespace halfscope::matrix_core_test
