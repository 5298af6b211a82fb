// `halfscope replay --scaling`: rules of operands' scales side by side.
#pragma once

#include <string>

namespace halfscope {

/// Takes the rules, separated by commas, through the operands of `trace`, and prints a row for each, or JSON.
/// Throws InvalidArgument as read_operand_trace and parse_scaling do.
void print_scalings(const std::string& trace, const std::string& rules);
void print_scalings_json(const std::string& trace, const std::string& rules);

}  // namespace halfscope
