// The sum of a branch and the shortcut around it (He et al., CVPR 2016).
#pragma once

#include "sim/tape.hpp"

namespace halfscope {

/// y = branch + shortcut, added in FP32 and rounded once. Backward hands both the same gradient. Throws
/// InvalidArgument where their shapes differ.
TensorRef add_residual(Tape& tape, const std::string& name, TensorRef branch, TensorRef shortcut);

}  // namespace halfscope
