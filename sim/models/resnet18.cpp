// Builds the residual network.
#include "sim/models/models.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "sim/layers/layers.hpp"
#include "sim/models/parts/accuracy.hpp"
#include "sim/models/parts/chain.hpp"
#include "sim/models/parts/classifier.hpp"
#include "sim/models/parts/dense_layer.hpp"
#include "sim/models/parts/model_options.hpp"
#include "sim/models/parts/normalised_convolution.hpp"

namespace halfscope {
namespace resnet18 {
namespace {

constexpr int stage_count = 4, blocks_per_stage = 2;

struct BasicBlock {
  std::string name;
  NormalisedConvolution first, second;
  std::optional<NormalisedConvolution> projection;  ///< none: the shortcut is the input itself
};

/// Sizes that differ between the blocks.
struct BlockShape {
  std::int64_t in = 0, out = 0, stride = 1;
};

BasicBlock add_block(ParameterStore& store, const ModelSpec& spec, const std::string& name,
                     const BlockShape& shape) {
  const auto layers = [&](const NormalisedConvolutionSpec& of_layers) {
    return add_normalised_convolution(store, spec, of_layers);
  };
  BasicBlock block{.name = name,
                   .first = layers({.convolution_name = name + ".conv1",
                                    .norm_name = name + ".bn1",
                                    .in = shape.in,
                                    .out = shape.out,
                                    .stride = shape.stride}),
                   .second = layers({.convolution_name = name + ".conv2",
                                     .norm_name = name + ".bn2",
                                     .in = shape.out,
                                     .out = shape.out,
                                     .gamma = spec.fp32(residual_gamma_option)}),
                   .projection = std::nullopt};
  if (shape.in != shape.out || shape.stride != 1) {
    block.projection.emplace(layers({.convolution_name = name + ".projection",
                                     .norm_name = name + ".projection_bn",
                                     .size = 1,
                                     .in = shape.in,
                                     .out = shape.out,
                                     .stride = shape.stride}));
  }
  return block;
}

TensorRef apply(Tape& tape, TensorRef x, const BasicBlock& block) {
  const TensorRef shortcut = block.projection ? convolve(tape, x, *block.projection) : x;
  TensorRef branch = relu(tape, block.name + ".relu1", convolve(tape, x, block.first));
  branch = convolve(tape, branch, block.second);
  return relu(tape, block.name + ".relu2", add_residual(tape, block.name + ".add", branch, shortcut));
}

/// From stage to stage there are a quarter of the pixels and twice the channels.
std::vector<ChainBlock> chain_of(const std::vector<BasicBlock>& blocks) {
  std::vector<ChainBlock> chained;
  for (const BasicBlock& block : blocks) {
    const auto stage = static_cast<int>(chained.size()) / blocks_per_stage;
    chained.push_back(
        {[&block](Tape& tape, TensorRef x) { return apply(tape, x, block); }, std::ldexp(1.0, -stage)});
  }
  return chained;
}

/// `name` is a literal; `width`: the channels of the first stage.
Model make(const ModelSpec& spec, std::string_view name, std::int64_t width) {
  check_takes_images(name, spec.example_shape);
  Model model{std::make_unique<ParameterStore>(), nullptr, make_accuracy};
  ParameterStore& store = *model.store;
  const NormalisedConvolution stem =
      add_normalised_convolution(store, spec, {"conv1", "bn1", 3, spec.example_shape.at(2), width});
  std::vector<BasicBlock> blocks;
  std::int64_t channels = width;
  for (int stage = 0; stage < stage_count; ++stage) {
    for (int index = 0; index < blocks_per_stage; ++index) {
      const BlockShape of_block{channels, width << stage, stage > 0 && index == 0 ? 2 : 1};
      blocks.push_back(add_block(store, spec, fmt::format("stage{}.{}", stage + 1, index), of_block));
      channels = of_block.out;
    }
  }
  const LinearParameters output = add_dense_layer(store, spec, {"fc", channels, spec.class_count, 0.5f});

  model.forward = [name, stem, blocks, output, smoothing = spec.fp32(label_smoothing_option)](
                      Tape& tape, const Batch& batch) {
    TensorRef x = tape.input("input", batch.inputs.to(active_device()));
    x = relu(tape, "relu1", convolve(tape, x, stem));
    x = chain(tape, x, chain_of(blocks));
    x = global_average_pool(tape, "pool", x);
    const TensorRef logits = linear(tape, "fc", x, output);
    return classify(tape, {name, smoothing}, logits, batch);
  };
  return model;
}

}  // namespace
}  // namespace resnet18

namespace {

Model make_resnet18(const ModelSpec& spec) {
  return resnet18::make(spec, "resnet18", 64);
}

Model make_narrow_resnet18(const ModelSpec& spec) {
  return resnet18::make(spec, "resnet18_narrow", 8);
}

}  // namespace

constexpr ModelKind resnet18_kind{make_resnet18,
                                  {label_smoothing_option, batch_norm_epsilon_option, residual_gamma_option}};
constexpr ModelKind resnet18_narrow_kind{
    make_narrow_resnet18, {label_smoothing_option, batch_norm_epsilon_option, residual_gamma_option}};

}  // namespace halfscope
