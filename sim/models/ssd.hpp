// A single-shot detector: boxes and classes from two feature maps in one pass.
#pragma once

#include "sim/models/model.hpp"

namespace halfscope {

/// After "SSD: Single Shot MultiBox Detector" (Liu et al., ECCV 2016), small: 3x3 convolutions with bias and
/// ReLU, 1 to 16, pool, to 32, pool, to 64 (the first map, a quarter of the image), pool, to 64 (the second,
/// an eighth); on each a 3x3 head that predicts the classes (background first) and 4 box offsets of 3 anchors
/// per cell. The loss is the cross entropy of all anchors plus the smooth L1 of the matched ones' offsets,
/// divided by the number of anchors in the batch; the metric is AP50. Throws InvalidArgument for images whose
/// sides are no multiples of 8, and in `forward` for a batch with labels instead of boxes or a box of no
/// known class.
[[nodiscard]] Model make_ssd(const ModelSpec& spec);

}  // namespace halfscope
