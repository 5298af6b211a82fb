// Builds AlexNet.
#include "sim/models/models.hpp"

#include <algorithm>

#include "sim/layers/layers.hpp"
#include "sim/models/parts/accuracy.hpp"
#include "sim/models/parts/classifier.hpp"
#include "sim/models/parts/convolution.hpp"
#include "sim/models/parts/dense_layer.hpp"
#include "sim/models/parts/model_options.hpp"
#include "sim/models/parts/width.hpp"

namespace halfscope {
namespace alexnet {
namespace {

/// Below so many pixels a side the first convolution is 5x5 with stride 1, else 11x11 with stride 4.
constexpr std::int64_t large_side = 128;
constexpr PoolWindow overlapping{.size = 3, .stride = 2, .partial = PartialWindow::kept};

struct AlexNet {
  Convolution conv1, conv2, conv3, conv4, conv5;
  LinearParameters fc6, fc7, fc8;
  float dropout, label_smoothing;
};

bool is_large(const Shape& image) {
  return std::min(image.at(0), image.at(1)) >= large_side;
}

/// Rows or columns of the last map.
std::int64_t last_extent(std::int64_t pixels, bool large) {
  const std::int64_t conv1 = large ? (pixels + 2 * 2 - 11) / 4 + 1 : pixels;
  return overlapping.count(overlapping.count(overlapping.count(conv1)));
}

AlexNet add_layers(ParameterStore& store, const ModelSpec& spec) {
  const Shape& image = spec.example_shape;
  const bool large = is_large(image);
  const auto channels = [&](std::int64_t published) { return at_width(spec, published, 2); };
  const auto conv = [&](const ConvolutionSpec& of_layer) { return add_convolution(store, spec, of_layer); };
  const auto dense = [&](const DenseSpec& of_layer) { return add_dense_layer(store, spec, of_layer); };
  const std::int64_t c1 = channels(96), c2 = channels(256), c3 = channels(384), fc = channels(4096);
  const std::int64_t map = last_extent(image[0], large) * last_extent(image[1], large);
  ConvolutionSpec stem{.name = "conv1", .size = 5, .in = image[2], .out = c1};
  if (large)
    stem = {.name = "conv1", .size = 11, .in = image[2], .out = c1, .stride = 4, .padding = Border{2, 2}};
  return {.conv1 = conv(stem),
          .conv2 = conv({.name = "conv2", .size = 5, .in = c1, .out = c2, .groups = 2, .bias = 0.1f}),
          .conv3 = conv({.name = "conv3", .in = c2, .out = c3}),
          .conv4 = conv({.name = "conv4", .in = c3, .out = c3, .groups = 2, .bias = 0.1f}),
          .conv5 = conv({.name = "conv5", .in = c3, .out = c2, .groups = 2, .bias = 0.1f}),
          .fc6 = dense({"fc6", map * c2, fc}),
          .fc7 = dense({"fc7", fc, fc}),
          .fc8 = dense({"fc8", fc, spec.class_count, 0.5f}),
          .dropout = spec.fp32(dropout_option),
          .label_smoothing = spec.fp32(label_smoothing_option)};
}

TensorRef logits_of(Tape& tape, TensorRef x, const AlexNet& net) {
  x = local_response_norm(tape, "norm1", convolve_relu(tape, x, net.conv1));
  x = convolve_relu(tape, max_pool(tape, "pool1", x, overlapping), net.conv2);
  x = max_pool(tape, "pool2", local_response_norm(tape, "norm2", x), overlapping);
  x = convolve_relu(tape, convolve_relu(tape, x, net.conv3), net.conv4);
  x = max_pool(tape, "pool5", convolve_relu(tape, x, net.conv5), overlapping);
  x = dropout(tape, "drop6", x, net.dropout);
  x = dropout(tape, "drop7", relu(tape, "relu6", linear(tape, "fc6", x, net.fc6)), net.dropout);
  return linear(tape, "fc8", relu(tape, "relu7", linear(tape, "fc7", x, net.fc7)), net.fc8);
}

}  // namespace
}  // namespace alexnet

namespace {

Model make_alexnet(const ModelSpec& spec) {
  using namespace alexnet;
  check_takes_images("alexnet", spec.example_shape);
  Model model{std::make_unique<ParameterStore>(), nullptr, make_accuracy};
  const AlexNet net = add_layers(*model.store, spec);
  model.forward = [net](Tape& tape, const Batch& batch) {
    const TensorRef logits = logits_of(tape, tape.input("input", batch.inputs.to(active_device())), net);
    return classify(tape, {"alexnet", net.label_smoothing}, logits, batch);
  };
  return model;
}

}  // namespace

constexpr ModelKind alexnet_kind{make_alexnet,
                                 {with_default(width_option, 0.125), dropout_option, label_smoothing_option}};

}  // namespace halfscope
