// Backbones of detectors: blocks of 3x3 convolutions with a pool between one block and the next.
#pragma once

#include <span>
#include <vector>

#include "sim/models/parts/convolution.hpp"

namespace halfscope {

/// Convolutions of a block and the channels of each.
struct BackboneBlock {
  int convolutions = 1;
  std::int64_t channels = 0;
};

/// Blocks of convolutions with bias and ReLU; a max pool 2/2 stands before each but the first.
using Backbone = std::vector<std::vector<Convolution>>;

/// Adds convN of each block to `store`, convN_1 and so on where it has several.
[[nodiscard]] Backbone add_backbone(ParameterStore& store, const ModelSpec& model,
                                    std::span<const BackboneBlock> blocks);

/// Feature maps behind each block.
[[nodiscard]] std::vector<TensorRef> feature_maps(Tape& tape, TensorRef x, const Backbone& backbone);

}  // namespace halfscope
