// Operations against their definitions on samples of every format, and a table of special values by hand.
#include <halfscope/arithmetic/operations.hpp>

#include "tests/arithmetic/half_pairs.hpp"
#include "tests/support/catch.hpp"

namespace halfscope::operations_test {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
const float quiet = from_bits(quiet_nan_bits);
const float signalling = from_bits(0x7F802000);

/// Random words that make stochastic rounding go down, up and either way.
constexpr std::uint32_t random_words[] = {0, 0xFFFFFFFF, 0x6A09E667};

/// A double holds the 32 fraction bits that stochastic rounding looks at only below 20 significand bits.
bool has_definition(const Quantizer& q) {
  return q.rounding != Rounding::stochastic || q.format.mantissa_bits < 20;
}

/// Reports the first disagreement with the definition only: there may be millions.
class Comparison {
 public:
  Comparison(const OperationCase& operation, const Quantizer& q) : operation_(operation), q_(q) {}

  void check(const Operands& x) {
    if (wrong_) return;
    for (const std::uint32_t word : random_words) {
      const Flagged actual = operation_.actual(x, q_, word);
      const reference::Answer expected = operation_.expected(x, q_, word);
      wrong_ = !agree(actual, expected);
      if (wrong_) {
        INFO(operation_.name << " to " << to_string(q_) << " of " << describe(x[0]) << ", " << describe(x[1])
                             << ", " << describe(x[2]) << " with random bits " << word);
        INFO("is " << describe(actual.value) << ", flags " << int{actual.flags});
        INFO("not " << describe(expected.value) << ", flags " << expected.flags);
        CHECK_FALSE(wrong_);
      }
      if (wrong_ || q_.rounding != Rounding::stochastic) return;
    }
  }

 private:
  const OperationCase& operation_;
  Quantizer q_;
  bool wrong_ = false;
};

TEST_CASE("operations are what their definitions say, for random operands of every format", "[operations]") {
  constexpr std::uint64_t samples = 400;
  for (const FloatFormat& format : formats_under_test()) {
    std::vector<Operands> operands(samples);
    for (std::uint64_t i = 0; i < samples; ++i) operands[i] = random_operands(format, i, 11);
    for (const Quantizer& q : quantizers_of(format)) {
      if (!has_definition(q)) continue;
      for (const OperationCase& operation : operation_cases) {
        Comparison comparison(operation, q);
        for (const Operands& x : operands) comparison.check(x);
      }
    }
  }
}

TEST_CASE("operations are what their definitions say, for hard operands", "[operations]") {
  for (const char* name : {"fp32", "fp16", "fp8_e4m3", "e2m1f", "fp16_ftz"}) {
    const FloatFormat format = parse_format(name);
    const std::vector<float> values = hard_values(format);
    for (const Quantizer& q : quantizers_of(format)) {
      if (!has_definition(q)) continue;
      for (const OperationCase& operation : operation_cases) {
        Comparison comparison(operation, q);
        for (const float a : values) {
          for (const float b : values) comparison.check({a, b, operation.operands == 3 ? -a : 0});
        }
      }
    }
  }
}

template <typename Operation>
void check_half_rows() {
  const std::vector<float> values = all_values(fp16);
  for_processor_roundings([&]<Rounding rounding>() {
    const HalfRow<Operation, rounding> row_of;
    for (std::size_t row = 0; row < values.size(); row += 5003) {
      INFO(Operation::name << " " << name_of(rounding) << " of " << describe(values[row]));
      CHECK(row_of.is_right(values[row]));
    }
  });
}

TEST_CASE("FP16 pairs in four roundings, a sample of the exhaustive test's rows", "[operations]") {
  check_half_rows<HalfAdd>();
  check_half_rows<HalfSub>();
  check_half_rows<HalfMul>();
  check_half_rows<HalfDiv>();
}

TEST_CASE("conversion between formats is the rounding of a float", "[operations]") {
  for (const FloatFormat& format : formats_under_test()) {
    for (const Quantizer& q : quantizers_of(format)) {
      for (const float x : boundary_floats(format)) {
        for (const std::uint32_t word : random_words) {
          if (same_bits(convert(x, q, word).value, round(x, q, word))) continue;
          INFO(to_string(q) << " of " << describe(x));
          REQUIRE(same_bits(convert(x, q, word).value, round(x, q, word)));
        }
      }
    }
  }
}

TEST_CASE("rounding to an integer is rounding to a grid of step 1", "[operations]") {
  for (const FloatFormat& format : {fp32, fp16, bf16, fp8_e4m3, parse_format("e2m3")}) {
    for (const Quantizer& q : quantizers_of(format)) {
      for (std::uint64_t i = 0; i < 3'000; ++i) {
        const float x = random_operands(format, i, 5)[0];
        const Flagged actual = round_to_integral(x, q, InexactFlag::raised, 0x6A09E667);
        if (std::isnan(x) || std::isinf(x)) {
          REQUIRE(same_bits(actual.value, round(x, q)));
          continue;
        }
        const double below = std::floor(std::abs(double{x}));
        const bool odd = std::fmod(below, 2.0) == 1.0;
        const bool up = reference::goes_up(std::abs(double{x}), odd, std::signbit(x), q, 0x6A09E667);
        const double integer = std::copysign(below + (up ? 1 : 0), double{x});
        const reference::Answer expected = reference::answer(integer, q, 0x6A09E667);
        const unsigned inexact = integer != double{x} ? 1 : 0;
        INFO(to_string(q) << " of " << describe(x) << " is " << describe(actual.value));
        REQUIRE(same_bits(actual.value, expected.value));
        REQUIRE(actual.flags == (expected.flags | inexact));
        REQUIRE(round_to_integral(x, q, InexactFlag::ignored, 0x6A09E667).flags == expected.flags);
      }
    }
  }
  CHECK(same_bits(round_to_integral(-0.25f, {fp16}).value, -0.0f));
  CHECK(round_to_integral(3.75f, {parse_format("e2m3")}).value == inf);  // its largest number is 3.75
}

struct SpecialValue {
  const char* operation;
  Operands operands;
  Rounding rounding;
  float value;
  unsigned flags;
};

TEST_CASE("special values are those of IEEE 754", "[operations]") {
  const Rounding near = Rounding::nearest_even;
  const SpecialValue table[] = {
      {"add", {1, -1}, near, 0.0f, 0},  // clause 6.3: the sign of an exact zero sum
      {"add", {1, -1}, Rounding::down, -0.0f, 0},
      {"add", {0.0f, -0.0f}, near, 0.0f, 0},
      {"add", {0.0f, -0.0f}, Rounding::down, -0.0f, 0},
      {"add", {-0.0f, -0.0f}, Rounding::up, -0.0f, 0},
      {"add", {0.0f, 0.0f}, Rounding::down, 0.0f, 0},
      {"sub", {0.0f, 0.0f}, Rounding::down, -0.0f, 0},
      {"sub", {-0.0f, 0.0f}, near, -0.0f, 0},
      {"add", {inf, -inf}, near, quiet, 16},  // 7.2: invalid operations
      {"sub", {inf, inf}, near, quiet, 16},
      {"add", {inf, -65504}, near, inf, 0},
      {"mul", {0, -inf}, near, quiet, 16},
      {"mul", {-0.0f, 3}, near, -0.0f, 0},
      {"fma", {0, inf, quiet}, near, quiet, 16},
      {"fma", {inf, 2, -inf}, near, quiet, 16},
      {"fma", {1, 1, -1}, Rounding::down, -0.0f, 0},
      {"div", {0, 0}, near, quiet, 16},
      {"div", {inf, -inf}, near, quiet, 16},
      {"div", {5, -inf}, near, -0.0f, 0},
      {"div", {inf, -0.0f}, near, -inf, 0},
      {"div", {5, -0.0f}, near, -inf, 8},  // 7.3: division by zero
      {"div", {-5, 0}, Rounding::toward_zero, -inf, 8},
      {"sqrt", {-0.0f}, near, -0.0f, 0},
      {"sqrt", {-1}, near, quiet, 16},
      {"sqrt", {inf}, near, inf, 0},
      {"rem", {5, 2}, near, 1, 0},
      {"rem", {7, 2}, near, -1, 0},
      {"rem", {-4, 2}, near, -0.0f, 0},
      {"rem", {3, inf}, near, 3, 0},
      {"rem", {3, 0}, near, quiet, 16},
      {"rem", {inf, 3}, near, quiet, 16},
      {"add", {quiet, 1}, near, quiet, 0},  // 6.2: NaNs
      {"add", {1, signalling}, near, quiet, 16},
      {"fma", {quiet, 1, signalling}, near, quiet, 16},
      {"add", {65504, 16}, near, inf, 5},  // 7.4: overflow
      {"add", {65504, 15.9921875f}, near, 65504, 1},
      {"mul", {-65504, 2}, Rounding::up, -65504, 5},
      {"mul", {65504, 2}, Rounding::toward_zero, 65504, 5},
      {"mul", {0x1p-14f, 0x1p-11f}, near, 0.0f, 3},  // 7.5: underflow, tininess after rounding
      {"mul", {0x1p-14f, 0x1p-10f}, near, 0x1p-24f, 0},
      {"mul", {0x1.ffcp-1f, 0x1.004p-14f}, near, 0x1p-14f, 1},
      {"mul", {0x1.ffcp-1f, 0x1p-14f}, near, 0x1p-14f, 3},
  };
  for (const SpecialValue& row : table) {
    const OperationCase& operation = find_in_table("operation", row.operation, operation_cases);
    const Flagged actual = operation.actual(row.operands, {fp16, row.rounding}, 0);
    INFO(row.operation << " of " << describe(row.operands[0]) << ", " << describe(row.operands[1]) << " "
                       << name_of(row.rounding) << " is " << describe(actual.value));
    CHECK(same_bits(actual.value, row.value));
    CHECK(int{actual.flags} == static_cast<int>(row.flags));
  }
}

TEST_CASE("a format without infinity says what becomes of one", "[operations]") {
  const auto is = [](const Flagged& x, float value, int flags) {
    return same_bits(x.value, value) && x.flags == flags;
  };
  const FloatFormat e2m1f = parse_format("e2m1f");
  CHECK(is(div(-1, 0, {fp8_e4m3}), quiet, 8));
  CHECK(is(div(-1, 0, {fp8_e4m3, Rounding::nearest_even, Overflow::saturate}), -448, 8));
  CHECK(is(div(-1, 0, {e2m1f}), -6, 8));
  CHECK(is(mul(448, 2, {fp8_e4m3}), quiet, 5));
  CHECK(is(mul(448, -2, {fp8_e4m3, Rounding::up}), -448, 5));
  CHECK(is(add(6, 6, {e2m1f}), 6, 5));
  CHECK(is(convert(inf, {fp8_e4m3}), quiet, 5));
  CHECK(is(convert(-inf, {fp16, Rounding::nearest_even, Overflow::saturate}), -65504, 5));
}

TEST_CASE("comparisons are signalling but for equality", "[operations]") {
  const auto is = [](const FlaggedBool& x, bool value, int flags) {
    return x.value == value && x.flags == flags;
  };
  CHECK(is(equal(0.0f, -0.0f), true, 0));
  CHECK(is(equal(1, 2), false, 0));
  CHECK(is(equal(quiet, quiet), false, 0));
  CHECK(is(equal(1, signalling), false, 16));
  CHECK(is(less(1, 2), true, 0));
  CHECK(is(less(2, 2), false, 0));
  CHECK(is(less(-0.0f, 0.0f), false, 0));
  CHECK(is(less(-inf, inf), true, 0));
  CHECK(is(less(quiet, 1), false, 16));
  CHECK(is(less_equal(2, 2), true, 0));
  CHECK(is(less_equal(0.0f, -0.0f), true, 0));
  CHECK(is(less_equal(3, 2), false, 0));
  CHECK(is(less_equal(1, quiet), false, 16));
  CHECK(is(less_equal(signalling, 1), false, 16));
}

}  // namespace
}  // namespace halfscope::operations_test
