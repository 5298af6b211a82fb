// Global average pooling: every channel's mean over its image.
#pragma once

#include "sim/tape.hpp"

namespace halfscope {

/// y (batch, channels) = the mean of x (batch, height, width, channels) over its positions. The sum is a
/// large reduction: it adds up as the policy's reduction model for the layer's name says, and the trackers
/// see it. Throws InvalidArgument where x is no batch of images.
TensorRef global_average_pool(Tape& tape, const std::string& name, TensorRef x);

}  // namespace halfscope
