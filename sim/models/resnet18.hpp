// ResNet-18 for small images (He et al., CVPR 2016, Table 1 and section 4.2).
#pragma once

#include "sim/models/model.hpp"

namespace halfscope {

/// conv 3x3 to 64 with stride 1 and no pool behind it, the stem that is usual for images of some thirty
/// pixels (at ImageNet's 224 it is 7x7 with stride 2 and a max pool); four stages of two basic blocks with
/// 64, 128, 256 and 512 channels, from the second on with stride 2 in the first convolution and a 1x1
/// projection around it; global average pool and a linear layer to the classes. Batch norm behind every
/// convolution. He initialisation, the last layer's halved. Throws InvalidArgument for what are no images.
[[nodiscard]] Model make_resnet18(const ModelSpec& spec);

/// The same with an eighth of the channels, which a CPU trains in minutes.
[[nodiscard]] Model make_narrow_resnet18(const ModelSpec& spec);

}  // namespace halfscope
