// `halfscope calc --stdin`: one line of operands in, one line of answer out, in the same order.
#pragma once

#include "experiments/cli/calc/calc_operations.hpp"

namespace halfscope {

/// Answers every line of standard input on standard output. A malformed line is answered with "error", and
/// its number and what is wrong with it go to stderr; once all lines are answered, InvalidArgument says how
/// many there were. Answers every line before it waits for the next, so a program may converse with
/// it.
void answer_standard_input(const CalcRequest& request);

}  // namespace halfscope
