// Builds the segmentation network.
#include "sim/models/models.hpp"

#include <fmt/format.h>

#include "sim/layers/layers.hpp"
#include "sim/models/parts/accuracy.hpp"
#include "sim/models/parts/convolution.hpp"

namespace halfscope {
namespace unet {
namespace {

constexpr std::int64_t reduction = 8;  // by three pools of 2

struct Unet {
  Convolution conv1, conv2, conv3, conv4, conv5, conv6, classes;
};

Unet add_layers(ParameterStore& store, const ModelSpec& spec) {
  const auto add = [&](const char* name, std::int64_t in, std::int64_t out) {
    return add_convolution(store, spec, {.name = name, .in = in, .out = out});
  };
  return {add("conv1", spec.example_shape.at(2), 16),
          add("conv2", 16, 32),
          add("conv3", 32, 64),
          add("conv4", 64, 64),
          add("conv5", 64, 32),
          add("conv6", 48, 16),
          add_convolution(store, spec, {.name = "classes", .size = 1, .in = 16, .out = spec.class_count})};
}

void check_images(const Shape& shape) {
  if (shape.size() == 3 && shape[0] > 0 && shape[1] > 0 && shape[0] % reduction == 0 &&
      shape[1] % reduction == 0) {
    return;
  }
  throw InvalidArgument("model unet pools three times: images need sides that are multiples of 8, not " +
                        to_string(shape));
}

void check_labels(const Batch& batch) {
  const Shape& shape = batch.inputs.shape();
  if (static_cast<std::int64_t>(batch.labels.size()) == shape.at(0) * shape.at(1) * shape.at(2)) return;
  throw InvalidArgument(
      fmt::format("model unet wants a label for each pixel, but {} images of {}x{} came with {} labels; "
                  "segmentation_scenes has them",
                  shape[0], shape[1], shape[2], batch.labels.size()));
}

TensorRef logits_of(Tape& tape, TensorRef input, const Unet& net) {
  const TensorRef kept = convolve_relu(tape, input, net.conv1);
  TensorRef x = convolve_relu(tape, max_pool(tape, "pool1", kept), net.conv2);
  x = convolve_relu(tape, max_pool(tape, "pool2", x), net.conv3);
  x = convolve_relu(tape, max_pool(tape, "pool3", x), net.conv4);
  x = convolve_relu(tape, x, net.conv5);
  x = concat_channels(tape, "concat", upsample_nearest(tape, "upsample", x, reduction), kept);
  return convolve(tape, convolve_relu(tape, x, net.conv6), net.classes);
}

}  // namespace
}  // namespace unet

namespace {

Model make_unet(const ModelSpec& spec) {
  using namespace unet;
  check_images(spec.example_shape);
  Model model{std::make_unique<ParameterStore>(), nullptr, make_accuracy};
  const Unet net = add_layers(*model.store, spec);
  model.forward = [net](Tape& tape, const Batch& batch) {
    check_labels(batch);
    const TensorRef logits = logits_of(tape, tape.input("input", batch.inputs.to(active_device())), net);
    return BatchOutcome{softmax_cross_entropy(tape, "loss", logits, batch.labels), {logits}};
  };
  return model;
}

}  // namespace

constexpr ModelKind unet_kind{make_unet};

}  // namespace halfscope
