// Cases of the tests of operations: each operation beside its definition, and operands that are hard.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include <halfscope/arithmetic/operations.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/round.hpp>

#include "tests/reference/operations.hpp"
#include "tests/support/formats.hpp"

namespace halfscope {

using Operands = std::array<float, 3>;

struct OperationCase {
  std::string_view name;
  int operands;
  Flagged (*actual)(const Operands&, const Quantizer&, std::uint32_t);
  reference::Answer (*expected)(const Operands&, const Quantizer&, std::uint32_t);
};

inline constexpr std::array operation_cases{
    OperationCase{"add", 2, [](auto& x, auto& q, auto random) { return add(x[0], x[1], q, random); },
                  [](auto& x, auto& q, auto random) { return reference::add(x[0], x[1], q, random); }},
    OperationCase{"sub", 2, [](auto& x, auto& q, auto random) { return sub(x[0], x[1], q, random); },
                  [](auto& x, auto& q, auto random) { return reference::sub(x[0], x[1], q, random); }},
    OperationCase{"mul", 2, [](auto& x, auto& q, auto random) { return mul(x[0], x[1], q, random); },
                  [](auto& x, auto& q, auto random) { return reference::mul(x[0], x[1], q, random); }},
    OperationCase{"div", 2, [](auto& x, auto& q, auto random) { return div(x[0], x[1], q, random); },
                  [](auto& x, auto& q, auto random) { return reference::div(x[0], x[1], q, random); }},
    OperationCase{"rem", 2, [](auto& x, auto& q, auto random) { return rem(x[0], x[1], q, random); },
                  [](auto& x, auto& q, auto random) { return reference::rem(x[0], x[1], q, random); }},
    OperationCase{"sqrt", 1, [](auto& x, auto& q, auto random) { return sqrt(x[0], q, random); },
                  [](auto& x, auto& q, auto random) { return reference::sqrt(x[0], q, random); }},
    OperationCase{"convert", 1, [](auto& x, auto& q, auto random) { return convert(x[0], q, random); },
                  [](auto& x, auto& q, auto random) { return reference::convert(x[0], q, random); }},
    OperationCase{"fma", 3, [](auto& x, auto& q, auto random) { return fma(x[0], x[1], x[2], q, random); },
                  [](auto& x, auto& q, auto random) { return reference::fma(x[0], x[1], x[2], q, random); }},
};

[[nodiscard]] inline bool agree(const Flagged& actual, const reference::Answer& expected) {
  return same_bits(actual.value, expected.value) && actual.flags == expected.flags;
}

/// Every number of a narrow format, and its infinities and NaNs.
[[nodiscard]] inline std::vector<float> all_values(const FloatFormat& format) {
  std::vector<float> values(std::size_t{1} << code_width(format));
  for (std::size_t code = 0; code < values.size(); ++code) {
    values[code] = decode(static_cast<std::uint32_t>(code), format);
  }
  return values;
}

/// Numbers of `format` at and beside its limits, powers of two and 1, and special ones.
[[nodiscard]] inline std::vector<float> hard_values(const FloatFormat& format) {
  std::vector<float> values;
  const std::uint32_t codes = 1u << (code_width(format) - 1);
  const std::uint32_t binade = 1u << format.mantissa_bits;
  for (const std::uint32_t anchor :
       {0u, binade, encode(1, format), codes / 2 + binade, codes - 2 * binade, codes - binade}) {
    for (const std::uint32_t code :
         {anchor - 2, anchor - 1, anchor, anchor + 1, anchor + 2, anchor + binade / 2}) {
      values.push_back(decode(code % codes, format));
      values.push_back(decode(code % codes + codes, format));
    }
  }
  return values;
}

/// Random codes, every third with the exponents of all three close together, where sums
/// cancel and round to halves.
[[nodiscard]] inline Operands random_operands(const FloatFormat& format, std::uint64_t index,
                                              std::uint64_t seed) {
  const RandomBlock random = RandomStream{seed}.block(index);
  Operands x{};
  for (std::size_t i = 0; i < 3; ++i) x[i] = decode(random[i], format);
  if (index % 3 == 0 && std::isfinite(x[0]) && std::isfinite(x[1])) {
    const int shift = static_cast<int>(random[3] % 61) - 30;
    const double product = double{x[0]} * double{x[1]};
    const float near_product = round(static_cast<float>(product), {format, Rounding::toward_zero});
    x[2] = random[3] >> 31 != 0 ? -near_product
                                : round(std::ldexp(near_product, shift), {format, Rounding::down});
  }
  return x;
}

}  // namespace halfscope
