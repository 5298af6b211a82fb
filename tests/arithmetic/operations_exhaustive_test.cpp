// All pairs of FP16 numbers and of FP8 numbers through the operations, and millions of triples against MPFR.
#include <fmt/format.h>

#include <atomic>

#include <halfscope/core/parallel.hpp>

#include "tests/arithmetic/operation_cases.hpp"
#include "tests/reference/half.hpp"
#include "tests/reference/mpfr_operations.hpp"
#include "tests/support/catch.hpp"

namespace halfscope {
namespace {

/// Calls `is_right(row)` for every row on two threads; the first row for which it is not is reported.
template <typename IsRight>
void check_rows(const std::string& what, std::int64_t rows, IsRight is_right) {
  std::atomic<std::int64_t> wrong = -1;
  set_thread_count(2);
  parallel_for(rows, [&](std::int64_t row) {
    if (wrong < 0 && !is_right(row)) wrong = row;
  });
  set_thread_count(1);
  INFO(what << " is wrong in row " << wrong);
  CHECK(wrong < 0);
}

struct HalfCase {
  std::string_view name;
  Flagged (*actual)(float, float, const Quantizer&, std::uint32_t);
  double (*exact)(double, double);  ///< to 53 bits, which is more than a rounding to 11 can see
};
constexpr HalfCase half_cases[] = {
    {"add", add, [](double a, double b) { return a + b; }},
    {"sub", sub, [](double a, double b) { return a - b; }},
    {"mul", mul, [](double a, double b) { return a * b; }},
    {"div", div, [](double a, double b) { return a / b; }},
};

bool half_pair_is_right(const HalfCase& operation, float a, float b, Rounding rounding) {
  const Flagged actual = operation.actual(a, b, {fp16, rounding}, 0);
  const double exact = operation.exact(double{a}, double{b});
  if (std::isnan(exact)) {
    const bool was_nan = std::isnan(a) || std::isnan(b);
    const bool invalid = !was_nan || reference::signalling(a) || reference::signalling(b);
    return to_bits(actual.value) == quiet_nan_bits && actual.flags == (invalid ? 16 : 0);
  }
  reference::HalfAnswer expected = reference::to_half(exact, rounding);
  if (operation.name == "div" && b == 0 && std::isfinite(a)) expected.flags = 8;
  return same_bits(actual.value, static_cast<float>(expected.value)) && actual.flags == expected.flags;
}

/// Pairs (a, b) with every a, and every `stride`-th b from a start that changes with a.
void check_half_pairs(const HalfCase& operation, Rounding rounding, std::size_t stride) {
  const std::vector<float> values = all_values(fp16);
  check_rows(fmt::format("fp16 {} {}", operation.name, name_of(rounding)), std::int64_t{1} << 16,
             [&](std::int64_t row) {
               const reference::ProcessorRounding processor(rounding);
               const auto a = static_cast<std::size_t>(row);
               bool right = true;
               for (std::size_t b = a * 7 % stride; b < values.size() && right; b += stride) {
                 right = half_pair_is_right(operation, values[a], values[b], rounding);
               }
               return right;
             });
}

TEST_CASE("FP16 add of all pairs", "[exhaustive]") {
  check_half_pairs(half_cases[0], Rounding::nearest_even, 1);
}

TEST_CASE("FP16 mul of all pairs", "[exhaustive]") {
  check_half_pairs(half_cases[2], Rounding::nearest_even, 1);
}

TEST_CASE("FP16 div of all pairs", "[exhaustive]") {
  check_half_pairs(half_cases[3], Rounding::nearest_even, 1);
}

TEST_CASE("FP16 add, sub, mul and div in four roundings, one pair in 16", "[exhaustive]") {
  for (const HalfCase& operation : half_cases) {
    for (const Rounding rounding :
         {Rounding::nearest_even, Rounding::toward_zero, Rounding::up, Rounding::down}) {
      check_half_pairs(operation, rounding, 16);
    }
  }
}

/// Every rounding that has a definition in doubles, with both overflow policies.
std::vector<Quantizer> defined_quantizers(const FloatFormat& format) {
  std::vector<Quantizer> quantizers = quantizers_of(format);
  std::erase_if(quantizers, [&](const Quantizer& q) {
    return q.rounding == Rounding::stochastic && format.mantissa_bits >= 20;
  });
  return quantizers;
}

TEST_CASE("sqrt of all FP16 and BF16 numbers in all roundings", "[exhaustive]") {
  for (const FloatFormat& format : {fp16, bf16}) {
    const std::vector<float> values = all_values(format);
    for (const Quantizer& q : defined_quantizers(format)) {
      check_rows(to_string(q) + " sqrt", 1 << 16, [&](std::int64_t row) {
        const float x = values[static_cast<std::size_t>(row)];
        return agree(sqrt(x, q, 0x6A09E667), reference::sqrt(x, q, 0x6A09E667));
      });
    }
  }
}

TEST_CASE("the remainder of FP16 pairs, one in 61", "[exhaustive]") {
  const std::vector<float> values = all_values(fp16);
  check_rows("fp16 rem", 1 << 16, [&](std::int64_t row) {
    const auto a = static_cast<std::size_t>(row);
    bool right = true;
    for (std::size_t b = a % 61; b < values.size() && right; b += 61) {
      right = agree(rem(values[a], values[b], {fp16}), reference::rem(values[a], values[b], {fp16}));
    }
    return right;
  });
}

TEST_CASE("all FP8 pairs through all operations, roundings and overflow policies", "[exhaustive]") {
  for (const FloatFormat& format : {fp8_e4m3, fp8_e5m2}) {
    const std::vector<float> values = all_values(format);
    for (const Quantizer& q : quantizers_of(format)) {
      for (const OperationCase& operation : operation_cases) {
        check_rows(fmt::format("{} {}", operation.name, to_string(q)), 256, [&](std::int64_t row) {
          bool right = true;
          for (std::size_t b = 0; b < 256; ++b) {
            const Operands x{values[static_cast<std::size_t>(row)], values[b], values[b ^ 0x91]};
            right &= agree(operation.actual(x, q, 0x6A09E667), operation.expected(x, q, 0x6A09E667));
          }
          return right;
        });
      }
    }
  }
}

TEST_CASE("fma of all triples of FP8 E4M3 numbers", "[exhaustive]") {
  const std::vector<float> values = all_values(fp8_e4m3);
  for (const Rounding rounding : {Rounding::nearest_even, Rounding::nearest_away, Rounding::toward_zero,
                                  Rounding::up, Rounding::down}) {
    const Quantizer q{fp8_e4m3, rounding};
    check_rows(to_string(q) + " fma", 1 << 16, [&](std::int64_t row) {
      const float a = values[static_cast<std::size_t>(row) >> 8];
      const float b = values[static_cast<std::size_t>(row) & 255];
      bool right = true;
      for (const float c : values) right &= agree(fma(a, b, c, q), reference::fma(a, b, c, q));
      return right;
    });
  }
}

TEST_CASE("conversion of all floats to FP16 is their rounding", "[exhaustive]") {
  check_rows("fp16 conversion", 1 << 16, [](std::int64_t row) {
    bool right = true;
    for (std::uint32_t low = 0; low < 1 << 16; ++low) {
      const float x = from_bits((static_cast<std::uint32_t>(row) << 16) | low);
      right &= same_bits(convert(x, {fp16}).value, round(x, {fp16}));
    }
    return right;
  });
}

TEST_CASE("conversion of one float in 65521 to every format has the value and flags of its definition",
          "[exhaustive]") {
  for (const FloatFormat& format : formats_under_test()) {
    for (const Quantizer& q : defined_quantizers(format)) {
      check_rows(to_string(q) + " conversion", 1 << 16, [&](std::int64_t row) {
        const float x = from_bits(static_cast<std::uint32_t>(row) * 65521u);
        return agree(convert(x, q, 0x6A09E667), reference::convert(x, q, 0x6A09E667)) &&
               same_bits(convert(x, q, 0x6A09E667).value, round(x, q, 0x6A09E667));
      });
    }
  }
}

bool agrees_with_mpfr(reference::Mpfr& mpfr, const Operands& x, const Quantizer& q) {
  const bool divisible = x[1] != 0;
  return agree(fma(x[0], x[1], x[2], q), mpfr.fma(x.data(), q)) &&
         agree(add(x[0], x[2], q), mpfr.add(std::array{x[0], x[2]}.data(), q)) &&
         agree(mul(x[0], x[1], q), mpfr.mul(x.data(), q)) && agree(sqrt(x[0], q), mpfr.sqrt(x.data(), q)) &&
         (!divisible || agree(div(x[0], x[1], q), mpfr.div(x.data(), q))) &&
         (!divisible || agree(rem(x[0], x[1], q), mpfr.rem(x.data(), q)));
}

TEST_CASE("a million random and hard triples of each wide format agree with MPFR", "[exhaustive]") {
  constexpr std::int64_t rows = 1000;
  constexpr std::int64_t per_row = 1000;
  for (const FloatFormat& format : {fp16, bf16, tf32, fp32}) {
    check_rows(to_string(format) + " against MPFR", rows, [&](std::int64_t row) {
      reference::Mpfr mpfr;
      bool right = true;
      for (std::int64_t i = 0; i < per_row; ++i) {
        const auto index = static_cast<std::uint64_t>(row * per_row + i);
        const Operands x = random_operands(format, index, 23);
        const bool finite = std::isfinite(x[0]) && std::isfinite(x[1]) && std::isfinite(x[2]);
        const auto rounding = static_cast<Rounding>(index / 3 % 6);  // all but stochastic
        right = right && (!finite || agrees_with_mpfr(mpfr, x, {format, rounding}));
      }
      return right;
    });
  }
}

}  // namespace
}  // namespace halfscope
