// Builds the single-shot detectors.
#include "sim/models/models.hpp"

#include "sim/layers/layers.hpp"
#include "sim/layers/predictions.hpp"
#include "sim/models/detection/anchors.hpp"
#include "sim/models/detection/backbone.hpp"
#include "sim/models/detection/checked_boxes.hpp"
#include "sim/models/detection/detection_metric.hpp"
#include "sim/models/detection/matching.hpp"

namespace halfscope {
namespace ssd {
namespace {

constexpr std::int64_t first_stride = 4, second_stride = 8;  // pixels per cell
constexpr float head_gain = 0.2f;

/// Blocks of a backbone; the heads stand on the maps of the last two.
using SsdBlocks = std::array<BackboneBlock, 4>;
constexpr SsdBlocks plain{BackboneBlock{1, 16}, {1, 32}, {1, 64}, {1, 64}};
constexpr SsdBlocks vgg{BackboneBlock{2, 16}, {2, 32}, {2, 64}, {2, 64}};

struct Ssd {
  std::string name;
  Backbone backbone;
  Convolution head1, head2;
  std::vector<Box> anchors;  ///< an image's, in the order of the predictions
  std::int64_t classes;      ///< with the background
};

std::vector<Box> anchors_of(std::int64_t height, std::int64_t width) {
  return make_anchors(
      std::array{AnchorGrid{height / first_stride, width / first_stride, first_stride, {20, 24, 28}},
                 AnchorGrid{height / second_stride, width / second_stride, second_stride, {24, 30, 36}}});
}

Ssd add_layers(std::string name, ParameterStore& store, const ModelSpec& spec, const SsdBlocks& blocks) {
  const std::int64_t classes = spec.class_count + 1, predictions = anchors_per_cell * (classes + box_offsets);
  const auto head = [&](const char* of, const BackboneBlock& block) {
    return add_convolution(store, spec,
                           {.name = of, .in = block.channels, .out = predictions, .gain = head_gain});
  };
  Backbone backbone = add_backbone(store, spec, blocks);
  Convolution head1 = head("head1", blocks[2]), head2 = head("head2", blocks[3]);
  return {std::move(name),
          std::move(backbone),
          std::move(head1),
          std::move(head2),
          anchors_of(spec.example_shape.at(0), spec.example_shape.at(1)),
          classes};
}

/// The two maps of predictions (batch, height, width, anchors * (classes + offsets)).
std::array<TensorRef, 2> predictions_of(Tape& tape, TensorRef input, const Ssd& net) {
  const std::vector<TensorRef> maps = feature_maps(tape, input, net.backbone);
  return {convolve(tape, maps.at(2), net.head1), convolve(tape, maps.at(3), net.head2)};
}

/// Found on the CPU: a step has few boxes.
AnchorTargets targets_of(const Ssd& net, const Batch& batch) {
  const DeviceScope here(Device::cpu);
  return assign_targets(net.anchors, batch.boxes, batch.inputs.extent(0));
}

BatchOutcome forward(Tape& tape, const Batch& batch, const Ssd& net) {
  check_boxes(net.name, batch, net.classes - 1);
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

Model make(std::string name, const ModelSpec& spec, const SsdBlocks& blocks) {
  check_detector_images(name, spec.example_shape, second_stride, second_stride);
  Model model{std::make_unique<ParameterStore>(), nullptr, nullptr};
  auto net = std::make_shared<const Ssd>(add_layers(std::move(name), *model.store, spec, blocks));
  model.forward = [net](Tape& tape, const Batch& batch) { return forward(tape, batch, *net); };
  model.make_metric = [net] { return make_detection_metric(net->anchors); };
  return model;
}

}  // namespace
}  // namespace ssd

namespace {

Model make_ssd(const ModelSpec& spec) {
  using namespace ssd;
  return make("ssd", spec, plain);
}

Model make_ssd_vgg(const ModelSpec& spec) {
  using namespace ssd;
  return make("ssd_vgg", spec, vgg);
}

}  // namespace

constexpr ModelKind ssd_kind{make_ssd};
constexpr ModelKind ssd_vgg_kind{make_ssd_vgg};

}  // namespace halfscope
