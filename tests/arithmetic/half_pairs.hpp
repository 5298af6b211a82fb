// Pairs of FP16 numbers through add, sub, mul and div, row by row against the processor's rounding of
// doubles.
#pragma once

#include <type_traits>

#include "tests/arithmetic/operation_cases.hpp"
#include "tests/reference/half.hpp"

namespace halfscope {

inline constexpr std::size_t half_block =
    1024;  ///< pairs at a time, so that they stay in the innermost cache

/// An operation; its double is exact, or keeps 53 bits of a quotient, which is more than a rounding to 11 can
/// see. The definition is for special operands.
struct HalfAdd {
  static constexpr std::string_view name = "add";
  static Flagged actual(float a, float b, const Quantizer& q) { return add(a, b, q); }
  static double exact(double a, double b) { return a + b; }
  static reference::Answer expected(float a, float b, const Quantizer& q) { return reference::add(a, b, q); }
};
struct HalfSub {
  static constexpr std::string_view name = "sub";
  static Flagged actual(float a, float b, const Quantizer& q) { return sub(a, b, q); }
  static double exact(double a, double b) { return a - b; }
  static reference::Answer expected(float a, float b, const Quantizer& q) { return reference::sub(a, b, q); }
};
struct HalfMul {
  static constexpr std::string_view name = "mul";
  static Flagged actual(float a, float b, const Quantizer& q) { return mul(a, b, q); }
  static double exact(double a, double b) { return a * b; }
  static reference::Answer expected(float a, float b, const Quantizer& q) { return reference::mul(a, b, q); }
};
struct HalfDiv {
  static constexpr std::string_view name = "div";
  static Flagged actual(float a, float b, const Quantizer& q) { return div(a, b, q); }
  static double exact(double a, double b) { return a / b; }
  static reference::Answer expected(float a, float b, const Quantizer& q) { return reference::div(a, b, q); }
};

inline constexpr Rounding processor_roundings[] = {Rounding::nearest_even, Rounding::toward_zero,
                                                   Rounding::up, Rounding::down};

/// One operand `a` against all of the 65,536 codes `b`. The rounding is known at compile time: the test takes
/// minutes.
template <typename Operation, Rounding rounding>
class HalfRow {
 public:
  [[nodiscard]] bool is_right(float a) const {
    bool right = true;
    for (std::size_t first = 0; first < b_.size(); first += half_block) right &= is_block_right(a, first);
    return right;
  }

 private:
  struct Block {
    float values[half_block];
    std::uint8_t flags[half_block];
  };

  [[nodiscard]] Block expected_block(float a, std::size_t first) const {
    const reference::ProcessorRounding processor(rounding);
    double results[half_block];
    Block block;
    for (std::size_t i = 0; i < half_block; ++i) {
      results[i] = Operation::exact(double{a}, double{b_[first + i]});
    }
    reference::to_grid(results, half_block, grid_, block.values, block.flags);
    return block;
  }

  [[nodiscard, gnu::flatten]] bool is_block_right(float a, std::size_t first) const {
    const Block expected = expected_block(a, first);
    bool right = true;
    for (std::size_t i = 0; i < half_block; ++i) {
      const float b = b_[first + i];
      const Flagged actual = Operation::actual(a, b, q);
      const bool by_zero = std::is_same_v<Operation, HalfDiv> && b == 0;
      if (!std::isfinite(a) || !std::isfinite(b) || by_zero) {
        right &= agree(actual, Operation::expected(a, b, q));
      } else {
        right &= same_bits(actual.value, expected.values[i]) & (actual.flags == expected.flags[i]);
      }
    }
    return right;
  }

  static constexpr Quantizer q{fp16, rounding};
  reference::ProcessorGrid grid_{q};
  std::vector<float> b_ = all_values(fp16);
};

/// Calls check.template operator()<rounding>() for the roundings that processors have.
template <typename Check>
void for_processor_roundings(Check check) {
  check.template operator()<Rounding::nearest_even>();
  check.template operator()<Rounding::toward_zero>();
  check.template operator()<Rounding::up>();
  check.template operator()<Rounding::down>();
}

}  // namespace halfscope
