// Answers of `halfscope calc` for people: values in decimal, flags by name.
#pragma once

#include <string>
#include <string_view>

#include "experiments/cli/calc/calc_operations.hpp"

namespace halfscope {

/// "inexact, overflow"; "exact" of none.
[[nodiscard]] std::string flag_words(std::uint8_t flags);

/// The answer on one line: "0x34cc 01  0.2999267578125  inexact".
[[nodiscard]] std::string explained(const CalcRequest& request, const CalcAnswer& answer);

/// A line for each operand: what was given, its bits, its value, and what reading it cost. For a block-scaled
/// unit also the codes and scales of a and b.
[[nodiscard]] std::string explained_operands(const CalcRequest& request, Words words);

}  // namespace halfscope
