// Two tensors side by side in their channels: the skip connection of a U-Net.
#pragma once

#include "sim/tape.hpp"

namespace halfscope {

/// y (..., channels of a + channels of b): exact in every format. Throws InvalidArgument unless a and b have
/// the same axes before the last.
TensorRef concat_channels(Tape& tape, const std::string& name, TensorRef a, TensorRef b);

}  // namespace halfscope
