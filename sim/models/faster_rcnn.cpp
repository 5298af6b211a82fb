// Builds the two-stage detector, with and without a mask head.
#include "sim/models/models.hpp"

#include <halfscope/core/parallel.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "sim/layers/layers.hpp"
#include "sim/layers/predictions.hpp"
#include "sim/models/detection/anchors.hpp"
#include "sim/models/detection/backbone.hpp"
#include "sim/models/detection/checked_boxes.hpp"
#include "sim/models/detection/detection_metric.hpp"
#include "sim/models/detection/mask_head.hpp"
#include "sim/models/detection/proposals.hpp"
#include "sim/models/detection/region_targets.hpp"
#include "sim/models/parts/dense_layer.hpp"

namespace halfscope {
namespace faster_rcnn {
namespace {

constexpr std::array blocks{BackboneBlock{2, 16}, BackboneBlock{2, 32}, BackboneBlock{2, 64}};
constexpr std::int64_t map_stride = 4;  // pixels per cell
constexpr std::int64_t pooled_size = 4, hidden = 128, objectness_classes = 2;
constexpr float output_gain = 0.2f;
constexpr std::size_t training_proposals = 20, test_proposals = 12;
constexpr SampleRule anchor_rule{.object_overlap = 0.6f, .background_overlap = 0.3f, .count = 64};
constexpr SampleRule region_rule{.object_overlap = 0.5f, .background_overlap = 0.5f, .count = 16};

struct FasterRcnn {
  Backbone backbone;
  Convolution rpn, objectness, anchor_offsets;
  LinearParameters fc6, fc7, classes, offsets;
  std::optional<MaskHead> mask_head;
  std::vector<Box> anchors;  ///< an image's, in the order of the predictions
  ImageExtent image;
  std::int64_t class_count;  ///< without the background
};

enum class Masks : std::uint8_t { absent, present };

FasterRcnn add_layers(ParameterStore& store, const ModelSpec& spec, Masks masks) {
  const std::int64_t height = spec.example_shape.at(0), width = spec.example_shape.at(1);
  const std::int64_t channels = blocks.back().channels;
  const auto output = [&](const char* name, std::int64_t count) {
    return add_convolution(store, spec,
                           {.name = name, .size = 1, .in = channels, .out = count, .gain = output_gain});
  };
  Backbone backbone = add_backbone(store, spec, blocks);
  Convolution rpn = add_convolution(store, spec, {.name = "rpn", .in = channels, .out = channels});
  Convolution objectness = output("rpn_objectness", anchors_per_cell * objectness_classes);
  Convolution offsets = output("rpn_offsets", anchors_per_cell * box_offsets);
  const std::int64_t classes = spec.class_count;
  return {.backbone = std::move(backbone),
          .rpn = std::move(rpn),
          .objectness = std::move(objectness),
          .anchor_offsets = std::move(offsets),
          .fc6 = add_dense_layer(store, spec, {"fc6", pooled_size * pooled_size * channels, hidden}),
          .fc7 = add_dense_layer(store, spec, {"fc7", hidden, hidden}),
          .classes = add_dense_layer(store, spec, {"classes", hidden, classes + 1, output_gain}),
          .offsets = add_dense_layer(store, spec, {"offsets", hidden, classes * box_offsets, output_gain}),
          .mask_head =
              masks == Masks::present ? std::optional(add_mask_head(store, spec, channels)) : std::nullopt,
          .anchors = make_anchors(
              std::array{AnchorGrid{height / map_stride, width / map_stride, map_stride, {20, 28, 36}}}),
          .image = {static_cast<float>(height), static_cast<float>(width)},
          .class_count = classes};
}

const char* name_of(const FasterRcnn& net) {
  return net.mask_head ? "mask_rcnn" : "faster_rcnn";
}

/// Outputs of the first stage for a batch.
struct FirstStage {
  TensorRef features;    // (batch, height / 4, width / 4, channels)
  TensorRef objectness;  // (batch * anchors, 2)
  TensorRef offsets;     // (batch * anchors, 4)
};

FirstStage first_stage(Tape& tape, TensorRef input, const FasterRcnn& net) {
  const TensorRef features = feature_maps(tape, input, net.backbone).back();
  const TensorRef shared = convolve_relu(tape, features, net.rpn);
  const auto rows = [&](const char* name, const Convolution& output, std::int64_t size) {
    return gather_predictions(tape, name, std::array{convolve(tape, shared, output)},
                              {.size = size, .first = 0, .count = size});
  };
  const TensorRef objectness = rows("anchor_logits", net.objectness, objectness_classes);
  return {features, objectness, rows("anchor_offsets", net.anchor_offsets, box_offsets)};
}

/// The proposals of each image, on the CPU and without a gradient.
std::vector<std::vector<Box>> proposals_of(const Tape& tape, const FirstStage& stage, const FasterRcnn& net,
                                           std::int64_t images) {
  const Array objectness = to_host_floats(tape.value(stage.objectness));
  const Array offsets = to_host_floats(tape.value(stage.offsets));
  const std::size_t anchors = net.anchors.size();
  const std::size_t count = tape.phase() == Phase::training ? training_proposals : test_proposals;
  std::vector<std::vector<Box>> proposals(static_cast<std::size_t>(images));
  parallel_for(images, [&](std::int64_t n) {
    const auto image = static_cast<std::size_t>(n);
    const AnchorPredictions predictions{objectness.values().subspan(image * anchors * 2, anchors * 2),
                                        offsets.values().subspan(image * anchors * 4, anchors * 4)};
    proposals[image] = propose(net.anchors, predictions, net.image, count);
  });
  return proposals;
}

/// The regions that the second stage looks at: in training samples of the proposals and the objects
/// themselves.
RegionTargets regions_of(Tape& tape, const FirstStage& stage, const FasterRcnn& net, const Batch& batch) {
  const auto proposals = proposals_of(tape, stage, net, batch.inputs.extent(0));
  if (tape.phase() == Phase::evaluation) return all_regions(proposals, batch.boxes);
  return sampled_regions(proposals, batch.boxes, region_rule, tape.random_stream("regions"));
}

/// Cross entropy of what was sampled, and smooth L1 of the objects among it, over the number of samples.
std::array<TensorRef, 2> anchor_losses(Tape& tape, const FirstStage& stage, const FasterRcnn& net,
                                       const Batch& batch) {
  AnchorSamples samples = sampled_anchors(net.anchors, batch.boxes, batch.inputs.extent(0), anchor_rule,
                                          tape.random_stream("anchors"));
  const TensorRef logits =
      take_rows(tape, "sampled_logits", stage.objectness, {samples.rows, objectness_classes});
  const auto count = static_cast<float>(samples.labels.size());
  return {softmax_cross_entropy(tape, "objectness_loss", logits, samples.labels),
          smooth_l1(tape, "anchor_loss", stage.offsets,
                    {.rows = std::move(samples.matched),
                     .values = samples.offsets.to(active_device()),
                     .denominator = count})};
}

/// Outputs of the second stage for regions.
struct SecondStage {
  TensorRef logits;   // (regions, classes + 1)
  TensorRef offsets;  // (regions, classes * 4)
};

SecondStage second_stage(Tape& tape, TensorRef features, const FasterRcnn& net,
                         const RegionTargets& regions) {
  const Shape& map = tape.value(features).shape();
  const std::vector<Region> cells = cells_of(regions.boxes, map_stride, {map.at(1), map.at(2)});
  TensorRef x = roi_max_pool(tape, "roi_pool", features, {cells, pooled_size});
  x = relu(tape, "fc6.relu", linear(tape, "fc6", x, net.fc6));
  x = relu(tape, "fc7.relu", linear(tape, "fc7", x, net.fc7));
  return {linear(tape, "classes", x, net.classes), linear(tape, "offsets", x, net.offsets)};
}

std::array<TensorRef, 2> region_losses(Tape& tape, const SecondStage& stage, RegionTargets& regions,
                                       std::int64_t class_count) {
  std::vector<std::int32_t> own;  // the offsets of a region's class; of the background none has a target
  for (std::size_t i = 0; i < regions.labels.size(); ++i) {
    own.push_back(static_cast<std::int32_t>(i) * static_cast<std::int32_t>(class_count) +
                  std::max(regions.labels[i] - 1, 0));
  }
  const TensorRef offsets = take_rows(tape, "class_offsets", stage.offsets, {own, box_offsets});
  const auto count = static_cast<float>(regions.labels.size());
  return {softmax_cross_entropy(tape, "class_loss", stage.logits, regions.labels),
          smooth_l1(tape, "box_loss", offsets,
                    {.rows = std::move(regions.matched),
                     .values = regions.offsets.to(active_device()),
                     .denominator = count})};
}

BatchOutcome forward(Tape& tape, const Batch& batch, const FasterRcnn& net) {
  check_boxes(name_of(net), batch, net.class_count);
  const FirstStage first = first_stage(tape, tape.input("input", batch.inputs.to(active_device())), net);
  RegionTargets regions = regions_of(tape, first, net, batch);
  const SecondStage second = second_stage(tape, first.features, net, regions);
  const auto [objectness, anchors] = anchor_losses(tape, first, net, batch);
  std::optional<TensorRef> masks;
  if (net.mask_head) masks = mask_loss(tape, first.features, map_stride, *net.mask_head, regions, batch);
  const auto [classes, boxes] = region_losses(tape, second, regions, net.class_count);
  std::vector losses{objectness, anchors, classes, boxes};
  if (masks) losses.push_back(*masks);
  return {total_loss(tape, "loss", losses), {second.logits, second.offsets}, std::move(regions.boxes)};
}

Model make_detector(const char* name, const ModelSpec& spec, Masks masks) {
  check_detector_images(name, spec.example_shape, map_stride, map_stride * pooled_size);
  Model model{std::make_unique<ParameterStore>(), nullptr, nullptr};
  auto net = std::make_shared<const FasterRcnn>(add_layers(*model.store, spec, masks));
  model.forward = [net](Tape& tape, const Batch& batch) { return forward(tape, batch, *net); };
  model.make_metric = [net] { return make_detection_metric(net->anchors); };
  return model;
}

}  // namespace
}  // namespace faster_rcnn

namespace {

Model make_faster_rcnn(const ModelSpec& spec) {
  using namespace faster_rcnn;
  return make_detector("faster_rcnn", spec, Masks::absent);
}

Model make_mask_rcnn(const ModelSpec& spec) {
  using namespace faster_rcnn;
  return make_detector("mask_rcnn", spec, Masks::present);
}

}  // namespace

constexpr ModelKind faster_rcnn_kind{make_faster_rcnn};
constexpr ModelKind mask_rcnn_kind{make_mask_rcnn};

}  // namespace halfscope
