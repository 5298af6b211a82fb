// Builds ResNet-50, with the activations behind the convolutions or before them.
#include "sim/models/models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "sim/layers/layers.hpp"
#include "sim/models/parts/accuracy.hpp"
#include "sim/models/parts/chain.hpp"
#include "sim/models/parts/classifier.hpp"
#include "sim/models/parts/dense_layer.hpp"
#include "sim/models/parts/model_options.hpp"
#include "sim/models/parts/normalised_convolution.hpp"
#include "sim/models/parts/width.hpp"

namespace halfscope {
namespace resnet50 {
namespace {

constexpr std::array stages{3, 4, 6, 3};  // bottlenecks
constexpr std::int64_t expansion = 4;     // channels of a bottleneck's output for one of its 3x3
constexpr std::int64_t large_side = 128;  // from so many pixels on the stem is 7x7 with stride 2, else 3x3
constexpr PoolWindow overlapping{.size = 3, .stride = 2, .padding = 1};

/// Sizes that differ between the bottlenecks.
struct BottleneckShape {
  std::int64_t in, middle, stride;
  [[nodiscard]] std::int64_t out() const { return expansion * middle; }
};

/// Calls `add` with the shape and the name of each bottleneck of the network.
template <typename Add>
void for_bottlenecks(const ModelSpec& spec, const Add& add) {
  std::int64_t in = at_width(spec, 64);
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const std::int64_t middle = at_width(spec, std::int64_t{64} << stage);
    for (int index = 0; index < stages.at(stage); ++index) {
      const BottleneckShape shape{in, middle, stage > 0 && index == 0 ? 2 : 1};
      add(fmt::format("stage{}.{}", stage + 1, index), shape, index == 0);
      in = shape.out();
    }
  }
}

std::int64_t stem_size(const ModelSpec& spec) {
  return std::min(spec.example_shape.at(0), spec.example_shape.at(1)) >= large_side ? 7 : 3;
}
std::int64_t stem_stride(const ModelSpec& spec) {
  return stem_size(spec) == 7 ? 2 : 1;
}

/// conv-norm-ReLU twice, conv-norm, plus the shortcut, ReLU.
struct Bottleneck {
  std::string name;
  NormalisedConvolution first, second, third;
  std::optional<NormalisedConvolution> projection;  ///< none: the shortcut is the input itself
};

Bottleneck add_bottleneck(ParameterStore& store, const ModelSpec& spec, const std::string& name,
                          const BottleneckShape& shape, bool projects) {
  const auto layers = [&](const NormalisedConvolutionSpec& of_layers) {
    return add_normalised_convolution(store, spec, of_layers);
  };
  Bottleneck block{.name = name,
                   .first = layers({.convolution_name = name + ".conv1",
                                    .norm_name = name + ".bn1",
                                    .size = 1,
                                    .in = shape.in,
                                    .out = shape.middle,
                                    .stride = shape.stride}),
                   .second = layers({name + ".conv2", name + ".bn2", 3, shape.middle, shape.middle}),
                   .third = layers({.convolution_name = name + ".conv3",
                                    .norm_name = name + ".bn3",
                                    .size = 1,
                                    .in = shape.middle,
                                    .out = shape.out(),
                                    .gamma = spec.fp32(residual_gamma_option)}),
                   .projection = std::nullopt};
  if (projects) {
    block.projection.emplace(
        layers({name + ".projection", name + ".projection_bn", 1, shape.in, shape.out(), shape.stride}));
  }
  return block;
}

TensorRef apply(Tape& tape, TensorRef x, const Bottleneck& block) {
  const TensorRef shortcut = block.projection ? convolve(tape, x, *block.projection) : x;
  TensorRef branch = relu(tape, block.name + ".relu1", convolve(tape, x, block.first));
  branch = relu(tape, block.name + ".relu2", convolve(tape, branch, block.second));
  branch = convolve(tape, branch, block.third);
  return relu(tape, block.name + ".relu3", add_residual(tape, block.name + ".add", branch, shortcut));
}

/// A batch norm and a ReLU before a convolution.
struct PreactivatedConvolution {
  std::string norm_name, relu_name, name;
  BatchNormParameters norm;
  Conv2dParameters convolution;
};

/// norm-ReLU-conv three times, plus the shortcut, which a projection takes behind the first ReLU.
struct PreactivatedBottleneck {
  std::string name;
  PreactivatedConvolution first, second, third;
  std::optional<Conv2dParameters> projection;
};

PreactivatedBottleneck add_preactivated(ParameterStore& store, const ModelSpec& spec, const std::string& name,
                                        const BottleneckShape& shape, bool projects) {
  const auto layers = [&](int index, const Shape& filter, std::int64_t stride) {
    const std::string number = std::to_string(index), conv = name + ".conv" + number,
                      norm = name + ".bn" + number;
    const BatchNormParameters of_norm = add_batch_norm(store, spec, norm, filter.at(2));
    return PreactivatedConvolution{norm,
                                   name + ".relu" + number,
                                   conv,
                                   of_norm,
                                   {.weight = add_filter(store, spec, conv, filter), .stride = stride}};
  };
  PreactivatedBottleneck block{.name = name,
                               .first = layers(1, {1, 1, shape.in, shape.middle}, shape.stride),
                               .second = layers(2, {3, 3, shape.middle, shape.middle}, 1),
                               .third = layers(3, {1, 1, shape.middle, shape.out()}, 1),
                               .projection = std::nullopt};
  if (projects) {
    Parameter& weight = add_filter(store, spec, name + ".projection", {1, 1, shape.in, shape.out()});
    block.projection.emplace(Conv2dParameters{.weight = weight, .stride = shape.stride});
  }
  return block;
}

TensorRef activate(Tape& tape, TensorRef x, const PreactivatedConvolution& layers) {
  return relu(tape, layers.relu_name, batch_norm(tape, layers.norm_name, x, layers.norm));
}

TensorRef apply(Tape& tape, TensorRef x, const PreactivatedBottleneck& block) {
  const TensorRef active = activate(tape, x, block.first);
  const TensorRef shortcut =
      block.projection ? conv2d(tape, block.name + ".projection", active, *block.projection) : x;
  TensorRef branch = conv2d(tape, block.first.name, active, block.first.convolution);
  branch = conv2d(tape, block.second.name, activate(tape, branch, block.second), block.second.convolution);
  branch = conv2d(tape, block.third.name, activate(tape, branch, block.third), block.third.convolution);
  return add_residual(tape, block.name + ".add", branch, shortcut);
}

/// From stage to stage there are a quarter of the pixels and twice the channels.
template <typename Block>
std::vector<ChainBlock> chain_of(const std::vector<Block>& blocks) {
  std::vector<ChainBlock> chained;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    for (int i = 0; i < stages.at(stage); ++i) {
      const Block& block = blocks[chained.size()];
      chained.push_back({[&block](Tape& tape, TensorRef x) { return apply(tape, x, block); },
                         std::ldexp(1.0, -static_cast<int>(stage))});
    }
  }
  return chained;
}

LinearParameters add_output(ParameterStore& store, const ModelSpec& spec) {
  return add_dense_layer(store, spec, {"fc", expansion * at_width(spec, 512), spec.class_count, 0.5f});
}

}  // namespace
}  // namespace resnet50

namespace {

Model make_resnet50(const ModelSpec& spec) {
  using namespace resnet50;
  check_takes_images("resnet50", spec.example_shape);
  Model model{std::make_unique<ParameterStore>(), nullptr, make_accuracy};
  ParameterStore& store = *model.store;
  const NormalisedConvolution stem = add_normalised_convolution(
      store, spec,
      {"conv1", "bn1", stem_size(spec), spec.example_shape.at(2), at_width(spec, 64), stem_stride(spec)});
  std::vector<Bottleneck> blocks;
  for_bottlenecks(spec, [&](const std::string& name, const BottleneckShape& shape, bool projects) {
    blocks.push_back(add_bottleneck(store, spec, name, shape, projects));
  });
  const LinearParameters output = add_output(store, spec);

  model.forward = [stem, blocks, output, smoothing = spec.fp32(label_smoothing_option)](Tape& tape,
                                                                                        const Batch& batch) {
    TensorRef x = tape.input("input", batch.inputs.to(active_device()));
    x = max_pool(tape, "pool1", relu(tape, "relu1", convolve(tape, x, stem)), overlapping);
    x = chain(tape, x, chain_of(blocks));
    const TensorRef logits = linear(tape, "fc", global_average_pool(tape, "pool", x), output);
    return classify(tape, {"resnet50", smoothing}, logits, batch);
  };
  return model;
}

Model make_resnet50_preact(const ModelSpec& spec) {
  using namespace resnet50;
  check_takes_images("resnet50_preact", spec.example_shape);
  Model model{std::make_unique<ParameterStore>(), nullptr, make_accuracy};
  ParameterStore& store = *model.store;
  const std::int64_t size = stem_size(spec);
  Parameter& stem_weight =
      add_filter(store, spec, "conv1", {size, size, spec.example_shape.at(2), at_width(spec, 64)});
  const Conv2dParameters stem{.weight = stem_weight, .stride = stem_stride(spec)};
  std::vector<PreactivatedBottleneck> blocks;
  for_bottlenecks(spec, [&](const std::string& name, const BottleneckShape& shape, bool projects) {
    blocks.push_back(add_preactivated(store, spec, name, shape, projects));
  });
  const BatchNormParameters norm = add_batch_norm(store, spec, "bn_last", expansion * at_width(spec, 512));
  const LinearParameters output = add_output(store, spec);

  model.forward = [stem, blocks, norm, output, smoothing = spec.fp32(label_smoothing_option)](
                      Tape& tape, const Batch& batch) {
    TensorRef x = conv2d(tape, "conv1", tape.input("input", batch.inputs.to(active_device())), stem);
    x = max_pool(tape, "pool1", x, overlapping);
    x = chain(tape, x, chain_of(blocks));
    x = relu(tape, "relu_last", batch_norm(tape, "bn_last", x, norm));
    const TensorRef logits = linear(tape, "fc", global_average_pool(tape, "pool", x), output);
    return classify(tape, {"resnet50_preact", smoothing}, logits, batch);
  };
  return model;
}

}  // namespace

constexpr ModelKind resnet50_kind{make_resnet50,
                                  {with_default(width_option, 0.125), label_smoothing_option,
                                   batch_norm_epsilon_option, residual_gamma_option}};
constexpr ModelKind resnet50_preact_kind{
    make_resnet50_preact,
    {with_default(width_option, 0.125), label_smoothing_option, batch_norm_epsilon_option}};

}  // namespace halfscope
