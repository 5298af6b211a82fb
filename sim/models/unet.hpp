// A small U-Net: a class for each pixel of an image.
#pragma once

#include "sim/models/model.hpp"

namespace halfscope {

/// 3x3 convolutions with bias and ReLU: 1 to 16 (kept), pool, to 32, pool, to 64, pool, to 64, to 32;
/// enlarged by 8 and put beside what was kept; to 16, and 1x1 to the classes. The loss is the cross entropy,
/// averaged over all pixels of the batch; the metric is the share of pixels that are right, in percent.
/// Throws InvalidArgument for images whose sides are no multiples of 8, and in `forward` for a batch without
/// a label per pixel.
[[nodiscard]] Model make_unet(const ModelSpec& spec);

}  // namespace halfscope
