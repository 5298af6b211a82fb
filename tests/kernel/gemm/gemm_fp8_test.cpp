// Products of FP8 numbers as tensor cores add them up: every code, sums beyond 31 bits, zeros, special
// values.
#include <halfscope/core/random.hpp>
#include <halfscope/format/encoding.hpp>

#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/matrix_products.hpp"

namespace halfscope::gemm_fp8_test {
namespace {

/// The tensor cores of FP8, as whole products and with sums that are promoted.
std::vector<AccumulateModel> models_of(const std::string& format) {
  std::vector<AccumulateModel> models;
  for (const char* core : {"ada", "hopper", "blackwell", "hopper, promote=64", "products=32, bits=7",
                           "products=16, bits=24, result=e8m9/toward_zero"})
    models.push_back(parse_accumulate_model(format + "_tensor_core(" + core + ")"));
  return models;
}

/// Which codes are drawn.
enum class Codes : std::uint8_t { finite, all };

std::vector<float> random_numbers(std::size_t count, const FloatFormat& format, Codes codes,
                                  std::uint64_t seed) {
  const RandomStream stream{.seed = seed};
  std::vector<float> numbers;
  for (std::uint64_t i = 0; numbers.size() < count; ++i) {
    const float x = decode(stream.bits(i) & 0xFFu, format);
    const bool is_finite = x - x == 0;
    // A special value in every hundredth place, or most sums would be NaN.
    if (is_finite || (codes == Codes::all && stream.bits(i) >> 8 < 0x40000u)) numbers.push_back(x);
  }
  return numbers;
}

struct NamedFormat8 {
  const char* name;
  FloatFormat format;
};
constexpr NamedFormat8 formats[] = {{"fp8_e4m3", fp8_e4m3}, {"fp8_e5m2", fp8_e5m2}};

TEST_CASE("FP8 products of all codes are the definition's for every depth", "[gemm][tensor_core]") {
  for (const NamedFormat8& entry : formats) {
    for (const std::int64_t depth : {1, 2, 15, 16, 17, 31, 32, 33, 127, 128, 129, 256, 257, 1000}) {
      const Extents extents{5, 35, depth};
      const std::size_t a = size_of(extents.rows, depth), b = size_of(depth, extents.columns);
      for (const Codes codes : {Codes::finite, Codes::all}) {
        const Operands operands{random_numbers(a, entry.format, codes, 1),
                                random_numbers(b, entry.format, codes, 2)};
        for (const AccumulateModel& model : models_of(entry.name)) check_products(operands, extents, model);
      }
    }
  }
}

TEST_CASE("thirty-two of the largest products pass 31 bits and are still exact", "[gemm][tensor_core]") {
  const Extents extents{5, 19, 96};
  for (const NamedFormat8& entry : formats) {
    const float largest = entry.format == fp8_e4m3 ? 1.875f : 1.75f;
    for (const float sign : {1.0f, -1.0f}) {
      std::vector<float> a(size_of(extents.rows, extents.depth), largest);
      std::vector<float> b(size_of(extents.depth, extents.columns), sign * largest);
      for (const AccumulateModel& model : models_of(entry.name)) check_products({a, b}, extents, model);
      // Some of the other sign, in other numbers for every column: sums on both sides of 2^30 and odd ones.
      for (std::size_t i = 0; i < b.size(); ++i) {
        if (i / 19 % 32 < i % 19) b[i] = -0.0625f * sign * static_cast<float>(i / 19 % 3);
      }
      for (std::size_t i = 0; i < a.size(); i += 7) a[i] = 0x1p-6f;
      for (const AccumulateModel& model : models_of(entry.name)) check_products({a, b}, extents, model);
    }
  }
}

TEST_CASE("the last bit of a sum beyond 30 bits decides what is cut off", "[gemm][tensor_core]") {
  // 18 products of 1.5 * 1.5 * 2^16 and one of 2^-9 of the other sign, which is the last of 25 bits below
  // 2^16.
  const Extents extents{4, 19, 32};
  for (const float sign : {1.0f, -1.0f}) {
    std::vector<float> a(size_of(4, 32), 384.0f), b(size_of(32, 19), sign * 384.0f);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = i % 32 == 20 ? -0x1p-9f : i % 32 < 18 ? 384.0f : 0.0f;
    for (std::size_t i = 0; i < b.size(); ++i) {
      if (i / 19 == 20) b[i] = sign;
    }
    for (const AccumulateModel& model : models_of("fp8_e4m3")) check_products({a, b}, extents, model);
  }
}

TEST_CASE("an FP8 zero times the largest number leaves the small products their places",
          "[gemm][tensor_core]") {
  const Extents extents{5, 19, 70};
  for (const NamedFormat8& entry : formats) {
    const float least = decode(1, entry.format);
    std::vector<float> a(size_of(5, 70), least), b(size_of(70, 19), -least);
    for (std::size_t i = 0; i < a.size(); i += 3) a[i] = 0;  // beside the largest of b
    for (std::size_t i = 0; i < b.size(); ++i) {
      if (i / 19 % 3 == 0) b[i] = from_bits(entry.format.max_finite_bits());
    }
    for (const AccumulateModel& model : models_of(entry.name)) check_products({a, b}, extents, model);
    const Operands zeros{std::vector<float>(size_of(5, 70), 0.0f), b};
    for (const AccumulateModel& model : models_of(entry.name)) check_products(zeros, extents, model);
  }
}

}  // namespace
}  // namespace halfscope::gemm_fp8_test
