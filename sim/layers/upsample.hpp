// Nearest-neighbour upsampling.
#pragma once

#include "sim/tape.hpp"

namespace halfscope {

/// y (batch, height * factor, width * factor, channels): each pixel of x becomes a square of `factor` by
/// `factor` equal ones, which is exact in every format. Its gradient is their sum, row by row in FP32,
/// rounded once. Throws InvalidArgument for a factor below 1 and where x is no batch of images.
TensorRef upsample_nearest(Tape& tape, const std::string& name, TensorRef x, std::int64_t factor);

}  // namespace halfscope
