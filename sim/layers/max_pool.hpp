// 2x2 max pooling with stride 2.
#pragma once

#include "sim/tape.hpp"

namespace halfscope {

/// y (batch, height / 2, width / 2, channels): exact in every format. Throws InvalidArgument for odd heights
/// or widths.
TensorRef max_pool(Tape& tape, const std::string& name, TensorRef x);

}  // namespace halfscope
