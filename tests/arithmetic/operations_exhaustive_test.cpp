// All pairs of FP16 numbers and of FP8 numbers through the operations, and millions of triples against MPFR.
#include <fmt/format.h>

#include "tests/arithmetic/check_rows.hpp"
#include "tests/arithmetic/half_pairs.hpp"
#include "tests/reference/mpfr_operations.hpp"

namespace halfscope::operations_exhaustive_test {
namespace {

/// All pairs (a, b) of codes, in four roundings.
template <typename Operation>
void check_half_pairs() {
  const std::vector<float> values = all_values(fp16);
  for_processor_roundings([&]<Rounding rounding>() {
    const HalfRow<Operation, rounding> row_of;
    check_rows(fmt::format("fp16 {} {}", Operation::name, name_of(rounding)), 1 << 16,
               [&](std::int64_t row) { return row_of.is_right(values[static_cast<std::size_t>(row)]); });
  });
}

TEST_CASE("FP16 add of all pairs in four roundings", "[exhaustive]") {
  check_half_pairs<HalfAdd>();
}

TEST_CASE("FP16 sub of all pairs in four roundings", "[exhaustive]") {
  check_half_pairs<HalfSub>();
}

TEST_CASE("FP16 mul of all pairs in four roundings", "[exhaustive]") {
  check_half_pairs<HalfMul>();
}

TEST_CASE("FP16 div of all pairs in four roundings", "[exhaustive]") {
  check_half_pairs<HalfDiv>();
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

void check_fp8_triples(const FloatFormat& format) {
  const std::vector<float> values = all_values(format);
  for (const Rounding rounding : {Rounding::nearest_even, Rounding::nearest_away, Rounding::toward_zero,
                                  Rounding::up, Rounding::down, Rounding::to_odd}) {
    const Quantizer q{format, rounding};
    check_rows(to_string(q) + " fma", 1 << 16, [&](std::int64_t row) {
      const float a = values[static_cast<std::size_t>(row) >> 8];
      const float b = values[static_cast<std::size_t>(row) & 255];
      bool right = true;
      for (const float c : values) right &= agree(fma(a, b, c, q), reference::fma(a, b, c, q));
      return right;
    });
  }
}

TEST_CASE("fma of all triples of FP8 E4M3 numbers", "[exhaustive]") {
  check_fp8_triples(fp8_e4m3);
}

TEST_CASE("fma of all triples of FP8 E5M2 numbers", "[exhaustive]") {
  check_fp8_triples(fp8_e5m2);
}

/// The conversion of every float, with its flags, and the rounding that has none.
void check_conversion(const Quantizer& q) {
  const reference::ProcessorGrid grid(q);
  check_rows(to_string(q) + " conversion", 1 << 16, [&](std::int64_t row) {
    constexpr std::size_t count = 1 << 16;
    std::vector<double> exact(count);
    std::vector<float> expected(count);
    std::vector<std::uint8_t> flags(count);
    const auto input = [row](std::size_t low) {
      return from_bits((static_cast<std::uint32_t>(row) << 16) | static_cast<std::uint32_t>(low));
    };
    for (std::size_t i = 0; i < count; ++i) exact[i] = double{input(i)};
    {
      const reference::ProcessorRounding processor(q.rounding);
      reference::to_grid(exact.data(), count, grid, expected.data(), flags.data());
    }
    bool right = true;
    for (std::size_t i = 0; i < count; ++i) {
      const float x = input(i);
      const Flagged actual = convert(x, q);
      const bool special = !std::isfinite(x);
      const bool as_expected = same_bits(actual.value, expected[i]) && actual.flags == flags[i];
      right &= special ? agree(actual, reference::convert(x, q)) : as_expected;
      right &= same_bits(actual.value, round(x, q));
    }
    return right;
  });
}

TEST_CASE("conversion of all floats to FP16 is their rounding, with the flags of its definition",
          "[exhaustive]") {
  check_conversion({fp16});
}

TEST_CASE("conversion of all floats to FP16 in directed roundings, and to BF16 and E5M2", "[slow]") {
  for (const Rounding rounding : {Rounding::toward_zero, Rounding::up, Rounding::down}) {
    check_conversion({fp16, rounding});
  }
  for (const FloatFormat& format : {bf16, fp8_e5m2}) {
    for (const Rounding rounding : processor_roundings) check_conversion({format, rounding});
  }
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

/// `holds(mpfr, index)` for every index, a new Mpfr per row.
template <typename Holds>
void check_with_mpfr(const std::string& what, std::int64_t count, Holds holds) {
  constexpr std::int64_t per_row = 1000;
  check_rows(what, count / per_row, [&](std::int64_t row) {
    reference::Mpfr mpfr;
    bool right = true;
    for (std::int64_t i = 0; i < per_row && right; ++i) {
      right = holds(mpfr, static_cast<std::uint64_t>(row * per_row + i));
    }
    return right;
  });
}

bool all_finite(const Operands& x) {
  return std::isfinite(x[0]) && std::isfinite(x[1]) && std::isfinite(x[2]);
}

TEST_CASE("a million random and hard triples of each wide format agree with MPFR", "[exhaustive]") {
  for (const FloatFormat& format : {fp16, bf16, tf32, fp32}) {
    check_with_mpfr(to_string(format), 1'000'000, [&](reference::Mpfr& mpfr, std::uint64_t index) {
      const Operands x = random_operands(format, index, 23);
      const auto rounding = static_cast<Rounding>(index / 3 % 6);  // all but stochastic
      return !all_finite(x) || agrees_with_mpfr(mpfr, x, {format, rounding});
    });
  }
}

/// Sums that land half way between two numbers or a little beside: a product of full significands, and c so
/// that few bits are left of it, or so that it decides a tie.
Operands tied_operands(const FloatFormat& format, std::uint64_t index) {
  const RandomBlock random = RandomStream{41}.block(index);
  Operands x{decode(random[0], format), decode(random[1], format), 0};
  if (!std::isfinite(x[0]) || !std::isfinite(x[1])) return x;
  const double product = double{x[0]} * double{x[1]};
  const int distance = static_cast<int>(random[2] % 64) - 32;
  const float anchor = round(static_cast<float>(std::ldexp(product, distance)), {format});
  const std::uint32_t code = encode(std::isfinite(anchor) ? anchor : 1.0f, format);
  // A power of two, a neighbour of one, or any number near.
  const std::uint32_t binade = code >> format.mantissa_bits << format.mantissa_bits;
  const std::uint32_t near = random[3] % 3 == 0 ? binade : random[3] % 3 == 1 ? binade + 1 : code;
  x[2] = decode(near ^ ((random[3] >> 31) << (code_width(format) - 1)), format);
  return x;
}

TEST_CASE(
    "fma of twelve million triples, random, cancelling and tied, of FP16, BF16 and TF32 agrees with MPFR",
    "[exhaustive]") {
  for (const FloatFormat& format : {fp16, bf16, tf32}) {
    check_with_mpfr(to_string(format) + " fma", 12'000'000, [&](reference::Mpfr& mpfr, std::uint64_t index) {
      const Operands x = index % 2 == 0 ? tied_operands(format, index) : random_operands(format, index, 29);
      const Quantizer q{format, static_cast<Rounding>(index / 6 % 6)};
      return !all_finite(x) || agree(fma(x[0], x[1], x[2], q), mpfr.fma(x.data(), q));
    });
  }
}

TEST_CASE("the oracle of FP16 pairs agrees with MPFR", "[exhaustive]") {
  for (const Rounding rounding : processor_roundings) {
    const Quantizer q{fp16, rounding};
    const reference::ProcessorGrid grid(q);
    const auto agrees = [&](double exact, const reference::Answer& expected) {
      float value = 0;
      std::uint8_t flags = 0;
      const reference::ProcessorRounding processor(rounding);
      reference::to_grid(&exact, 1, grid, &value, &flags);
      return same_bits(value, expected.value) && flags == expected.flags;
    };
    check_with_mpfr(to_string(q), 1'000'000, [&](reference::Mpfr& mpfr, std::uint64_t index) {
      const Operands x = random_operands(fp16, index, 37);
      if (!all_finite(x)) return true;
      const std::array<float, 2> pair{x[0], x[index % 2 == 0 ? 1 : 2]};
      const double a = double{pair[0]}, b = double{pair[1]};
      return (a + b == 0 || agrees(a + b, mpfr.add(pair.data(), q))) &&
             (a * b == 0 || agrees(a * b, mpfr.mul(pair.data(), q))) &&
             (a == 0 || b == 0 || agrees(a / b, mpfr.div(pair.data(), q)));
    });
  }
}

}  // namespace
}  // namespace halfscope::operations_exhaustive_test
