// Builds configuration D of VGG.
#include "sim/models/models.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "sim/layers/layers.hpp"
#include "sim/models/parts/accuracy.hpp"
#include "sim/models/parts/classifier.hpp"
#include "sim/models/parts/convolution.hpp"
#include "sim/models/parts/dense_layer.hpp"
#include "sim/models/parts/model_options.hpp"
#include "sim/models/parts/width.hpp"

namespace halfscope {
namespace vgg_d {
namespace {

/// Convolutions of a block and their channels; a pool ends it.
struct BlockSize {
  int convolutions;
  std::int64_t channels;
};
constexpr std::array published{BlockSize{2, 64}, BlockSize{2, 128}, BlockSize{3, 256}, BlockSize{3, 512},
                               BlockSize{3, 512}};
/// Sides that are no multiples of 32 are rounded up.
constexpr PoolWindow pairs{.size = 2, .stride = 2, .partial = PartialWindow::kept};

struct VggD {
  std::vector<std::vector<Convolution>> blocks;
  LinearParameters fc6, fc7, fc8;
  float dropout, label_smoothing;
};

VggD add_layers(ParameterStore& store, const ModelSpec& spec) {
  std::vector<std::vector<Convolution>> blocks;
  std::int64_t in = spec.example_shape.at(2), height = spec.example_shape[0], width = spec.example_shape[1];
  for (const BlockSize& size : published) {
    std::vector<Convolution>& block = blocks.emplace_back();
    for (int i = 1; i <= size.convolutions; ++i) {
      const std::int64_t out = at_width(spec, size.channels);
      block.push_back(add_convolution(
          store, spec, {.name = fmt::format("conv{}_{}", blocks.size(), i), .in = in, .out = out}));
      in = out;
    }
    height = pairs.count(height);
    width = pairs.count(width);
  }
  const std::int64_t fc = at_width(spec, 4096);
  return {.blocks = std::move(blocks),
          .fc6 = add_dense_layer(store, spec, {"fc6", height * width * in, fc}),
          .fc7 = add_dense_layer(store, spec, {"fc7", fc, fc}),
          .fc8 = add_dense_layer(store, spec, {"fc8", fc, spec.class_count, 0.5f}),
          .dropout = spec.fp32(dropout_option),
          .label_smoothing = spec.fp32(label_smoothing_option)};
}

TensorRef logits_of(Tape& tape, TensorRef x, const VggD& net) {
  for (std::size_t i = 0; i < net.blocks.size(); ++i) {
    for (const Convolution& convolution : net.blocks[i]) x = convolve_relu(tape, x, convolution);
    x = max_pool(tape, fmt::format("pool{}", i + 1), x, pairs);
  }
  x = dropout(tape, "drop6", relu(tape, "relu6", linear(tape, "fc6", x, net.fc6)), net.dropout);
  x = dropout(tape, "drop7", relu(tape, "relu7", linear(tape, "fc7", x, net.fc7)), net.dropout);
  return linear(tape, "fc8", x, net.fc8);
}

}  // namespace
}  // namespace vgg_d

namespace {

Model make_vgg_d(const ModelSpec& spec) {
  using namespace vgg_d;
  check_takes_images("vgg_d", spec.example_shape);
  Model model{std::make_unique<ParameterStore>(), nullptr, make_accuracy};
  const VggD net = add_layers(*model.store, spec);
  model.forward = [net](Tape& tape, const Batch& batch) {
    const TensorRef logits = logits_of(tape, tape.input("input", batch.inputs.to(active_device())), net);
    return classify(tape, {"vgg_d", net.label_smoothing}, logits, batch);
  };
  return model;
}

}  // namespace

constexpr ModelKind vgg_d_kind{make_vgg_d,
                               {with_default(width_option, 0.125), dropout_option, label_smoothing_option}};

}  // namespace halfscope
