// Makes and applies backbones.
#include "sim/models/detection/backbone.hpp"

#include <fmt/format.h>

namespace halfscope {

Backbone add_backbone(ParameterStore& store, const ModelSpec& model, std::span<const BackboneBlock> blocks) {
  Backbone backbone;
  std::int64_t in = model.example_shape.at(2);
  for (const BackboneBlock& block : blocks) {
    std::vector<Convolution>& convolutions = backbone.emplace_back();
    for (int i = 1; i <= block.convolutions; ++i) {
      std::string name = fmt::format("conv{}", backbone.size());
      if (block.convolutions > 1) name += fmt::format("_{}", i);
      convolutions.push_back(add_convolution(store, model, {.name = name, .in = in, .out = block.channels}));
      in = block.channels;
    }
  }
  return backbone;
}

std::vector<TensorRef> feature_maps(Tape& tape, TensorRef x, const Backbone& backbone) {
  std::vector<TensorRef> maps;
  for (const std::vector<Convolution>& block : backbone) {
    if (!maps.empty()) x = max_pool(tape, fmt::format("pool{}", maps.size()), x);
    for (const Convolution& convolution : block) x = convolve_relu(tape, x, convolution);
    maps.push_back(x);
  }
  return maps;
}

}  // namespace halfscope
