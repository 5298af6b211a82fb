// Delayed scales of operands when a step ends.
#pragma once

#include "sim/tape/operand_scales.hpp"

namespace halfscope {

/// Takes the largest magnitudes of a step, over all processes, into the scales, and forgets them. All
/// processes have seen the same operands.
void end_step(OperandScales& scales, OperandMaxima& step);

}  // namespace halfscope
