// What `halfscope calc` can do: one line per operation.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <halfscope/arithmetic/operations.hpp>

namespace halfscope {

using Words = std::span<const std::string_view>;

/// A result's code and the flags.
struct CalcAnswer {
  std::uint32_t code = 0;
  std::uint8_t flags = 0;
};

struct CalcOperation {
  std::string_view name;
  std::string_view summary;
  std::size_t operands;
  CalcAnswer (*evaluate)(Words words, const Quantizer& q, std::uint32_t random_bits);
  enum class Kind : std::uint8_t { number, truth } result = Kind::number;
};

[[nodiscard]] std::span<const CalcOperation> calc_operations();

/// What is asked for: an operation, the format and rounding of its result, and the seed of stochastic
/// rounding.
struct CalcRequest {
  const CalcOperation* operation = nullptr;
  Quantizer quantizer;
  std::uint64_t seed = 0;
};

/// Appends the answer to `words` as "0x3c00 01\n" to `out`, or "1 00\n" for a comparison; `index` says which
/// random bits a stochastic rounding draws. Throws RequestError where a word is not what the operation needs.
void append_answer(std::string& out, const CalcRequest& request, Words words, std::uint64_t index);

}  // namespace halfscope
