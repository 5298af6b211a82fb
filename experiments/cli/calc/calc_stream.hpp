// `halfscope calc --stdin`: one line of operands in, one line of answer out, in the same order.
#pragma once

#include "experiments/cli/calc/calc_operations.hpp"

namespace halfscope {

/// How a line is answered.
enum class AnswerStyle : std::uint8_t {
  bits,       ///< for programs, see append_answer
  explained,  ///< for people, see explained; lines that are empty or start with # have no answer
};

/// Answers every line of standard input on standard output. A malformed line is answered with "error", and
/// its number and what is wrong with it go to stderr; once all lines are answered, InvalidArgument says how
/// many there were. Answers every line before it waits for the next, so a program may converse with
/// it.
void answer_standard_input(const CalcRequest& request, AnswerStyle style = AnswerStyle::bits);

}  // namespace halfscope
