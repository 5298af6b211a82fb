// Operations of `halfscope calc`: one line per operation.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/arithmetic/block_dot.hpp>
#include <halfscope/arithmetic/operations.hpp>

#include "experiments/cli/calc/calc_block.hpp"

namespace halfscope {

using Words = std::span<const std::string_view>;

/// A result's code and the flags.
struct CalcAnswer {
  std::uint32_t code = 0;
  std::uint8_t flags = 0;
};

/// A block-scaled unit, and the formats in which it gets the rows a and b.
struct BlockDot {
  BlockFormat a, b;
  const BlockScaledUnit* unit = nullptr;
};

/// How `dot` adds up: the model, and the formats of the operands and of the result.
struct DotProduct {
  AccumulateModel model;
  FloatFormat input, output;
  std::optional<BlockDot> blocks{};  ///< in place of the model
};

struct CalcRequest;

struct CalcOperation {
  std::string_view name;
  std::string_view summary;
  std::size_t operands;  ///< any_number for dot
  CalcAnswer (*evaluate)(Words words, const CalcRequest& request, std::uint32_t random_bits);
  enum class Kind : std::uint8_t { number, truth } result = Kind::number;
};
inline constexpr std::size_t any_number = 0;

[[nodiscard]] std::span<const CalcOperation> calc_operations();

/// A request: an operation, the format and rounding of its result, and the seed of stochastic
/// rounding.
struct CalcRequest {
  const CalcOperation* operation = nullptr;
  Quantizer quantizer;
  std::uint64_t seed = 0;
  FloatFormat from{};                   ///< format of the bit patterns that `round` takes
  DotProduct dot;                       ///< for `dot` alone; the quantizer has the format of its result
  std::optional<BlockRequest> block{};  ///< for `round` to a block format, which is answered by blocks
};

/// The answer to `words`; `index` says which random bits a stochastic rounding draws. Throws InvalidArgument
/// where a word is not what the operation needs.
[[nodiscard]] CalcAnswer evaluate(const CalcRequest& request, Words words, std::uint64_t index);

/// Appends the answer to `words` as "0x3c00 01\n" to `out`, or "1 00\n" for a comparison.
void append_answer(std::string& out, const CalcRequest& request, const CalcAnswer& answer);

}  // namespace halfscope
