// The sum of several losses.
#pragma once

#include <span>

#include "sim/tape.hpp"

namespace halfscope {

/// A scalar: the sum of the scalars `losses`, in FP32 as each of them is. Throws InvalidArgument for none and
/// for one that is no scalar.
TensorRef total_loss(Tape& tape, const std::string& name, std::span<const TensorRef> losses);

}  // namespace halfscope
