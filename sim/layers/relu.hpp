// Rectified linear unit.
#pragma once

#include "sim/tape.hpp"

namespace halfscope {

/// y = max(x, 0): exact in every format.
TensorRef relu(Tape& tape, const std::string& name, TensorRef x);

}  // namespace halfscope
