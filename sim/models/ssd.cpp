// Builds the detector.
#include "sim/models/models.hpp"

#include <fmt/format.h>

#include "sim/layers/layers.hpp"
#include "sim/layers/predictions.hpp"
#include "sim/models/convolution.hpp"
#include "sim/models/detection/anchors.hpp"
#include "sim/models/detection/detection_metric.hpp"
#include "sim/models/detection/matching.hpp"

namespace halfscope {
namespace {

constexpr std::int64_t first_stride = 4, second_stride = 8;  // pixels per cell
constexpr float head_gain = 0.2f;

struct Ssd {
  Convolution conv1, conv2, conv3, conv4, head1, head2;
  std::vector<Box> anchors;  ///< of one image, in the order of the predictions
  std::int64_t classes;      ///< with the background
};

std::vector<Box> anchors_of(std::int64_t height, std::int64_t width) {
  return make_anchors(
      std::array{AnchorGrid{height / first_stride, width / first_stride, first_stride, {20, 24, 28}},
                 AnchorGrid{height / second_stride, width / second_stride, second_stride, {24, 30, 36}}});
}

Ssd add_layers(ParameterStore& store, const ModelSpec& spec) {
  const auto add = [&](const char* name, std::int64_t in, std::int64_t out, float gain) {
    return add_convolution(store, spec, {.name = name, .in = in, .out = out, .gain = gain});
  };
  const std::int64_t classes = spec.class_count + 1;
  const std::int64_t head = anchors_per_cell * (classes + box_offsets);
  return {add("conv1", spec.example_shape.at(2), 16, 1),
          add("conv2", 16, 32, 1),
          add("conv3", 32, 64, 1),
          add("conv4", 64, 64, 1),
          add("head1", 64, head, head_gain),
          add("head2", 64, head, head_gain),
          anchors_of(spec.example_shape.at(0), spec.example_shape.at(1)),
          classes};
}

void check_images(const Shape& shape) {
  if (shape.size() == 3 && shape[0] > 0 && shape[1] > 0 && shape[0] % second_stride == 0 &&
      shape[1] % second_stride == 0) {
    return;
  }
  throw InvalidArgument("model ssd pools three times: images need sides that are multiples of 8, not " +
                        to_string(shape));
}

void check_boxes(const Batch& batch, std::int64_t classes) {
  if (batch.boxes.empty() && !batch.labels.empty()) {
    throw InvalidArgument(
        "model ssd wants boxes, but the data set has labels only; detection_scenes has boxes");
  }
  for (const Box& box : batch.boxes) {
    if (box.label >= 0 && box.label < classes - 1 && box.example >= 0 &&
        box.example < batch.inputs.extent(0)) {
      continue;
    }
    throw InvalidArgument(fmt::format("model ssd: a box of class {} in image {}; expected 0 to {} in 0 to {}",
                                      box.label, box.example, classes - 2, batch.inputs.extent(0) - 1));
  }
}

/// The two maps of predictions (batch, height, width, anchors * (classes + offsets)).
std::array<TensorRef, 2> predictions_of(Tape& tape, TensorRef input, const Ssd& net) {
  TensorRef x = max_pool(tape, "pool1", convolve_relu(tape, input, net.conv1));
  x = max_pool(tape, "pool2", convolve_relu(tape, x, net.conv2));
  const TensorRef fine = convolve_relu(tape, x, net.conv3);
  const TensorRef coarse = convolve_relu(tape, max_pool(tape, "pool3", fine), net.conv4);
  return {convolve(tape, fine, net.head1), convolve(tape, coarse, net.head2)};
}

/// Found on the CPU: a step has few boxes.
AnchorTargets targets_of(const Ssd& net, const Batch& batch) {
  const DeviceScope here(Device::cpu);
  return assign_targets(net.anchors, batch.boxes, batch.inputs.extent(0));
}

BatchOutcome forward(Tape& tape, const Batch& batch, const Ssd& net) {
  check_boxes(batch, net.classes);
  const auto maps = predictions_of(tape, tape.input("input", batch.inputs.to(active_device())), net);
  const std::int64_t size = net.classes + box_offsets;
  const TensorRef logits =
      gather_predictions(tape, "logits", maps, {.size = size, .first = 0, .count = net.classes});
  const TensorRef offsets =
      gather_predictions(tape, "offsets", maps, {.size = size, .first = net.classes, .count = box_offsets});

  AnchorTargets targets = targets_of(net, batch);
  const auto rows = static_cast<float>(targets.labels.size());
  const std::array losses{softmax_cross_entropy(tape, "class_loss", logits, targets.labels),
                          smooth_l1(tape, "box_loss", offsets,
                                    {.rows = std::move(targets.matched),
                                     .values = targets.offsets.to(active_device()),
                                     .denominator = rows})};
  return {total_loss(tape, "loss", losses), {logits, offsets}};
}

}  // namespace

Model make_ssd(const ModelSpec& spec) {
  check_images(spec.example_shape);
  Model model{std::make_unique<ParameterStore>(), nullptr, nullptr};
  auto net = std::make_shared<const Ssd>(add_layers(*model.store, spec));
  model.forward = [net](Tape& tape, const Batch& batch) { return forward(tape, batch, *net); };
  model.make_metric = [net] { return make_detection_metric(net->anchors); };
  return model;
}

}  // namespace halfscope
