// The detector and the segmentation: their sizes, that they learn, and what they refuse.
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "sim/models/detection/anchors.hpp"
#include "sim/models/detection/detection_metric.hpp"
#include "sim/models/detection/matching.hpp"
#include "sim/models/models.hpp"
#include "sim/train/trainer.hpp"
#include "tests/sim/corners.hpp"
#include "tests/sim/own_options.hpp"
#include "tests/sim/small_dataset.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::vision_models_test {
namespace {

TrainConfig small_config(const std::string& model, const std::string& policy = "fp32") {
  return {
      .model = model, .steps = 60, .batch = 8, .learning_rate = 3e-3, .warmup_steps = 5, .policy = policy};
}

Evaluation train(const TrainConfig& config, const Dataset& dataset) {
  Trainer trainer(config, dataset);
  for (std::int64_t i = 0; i < config.steps; ++i) {
    REQUIRE(std::isfinite(trainer.step().loss));
    REQUIRE(trainer.weights_finite());
  }
  return trainer.evaluate();
}

TEST_CASE("the detectors find squares, in FP32 and FP16", "[vision][long]") {
  for (const char* model : {"ssd", "ssd_vgg", "faster_rcnn", "mask_rcnn"}) {
    for (const char* policy : {"fp32", "fp16_mixed"}) {
      INFO(model << ", " << policy);
      TrainConfig config = small_config(model, policy);
      config.loss_scale = "1024";
      CHECK(train(config, Corners()).metric > 0.9);
    }
  }
}

TEST_CASE("the segmentation finds squares, in FP32 and FP16", "[vision][long]") {
  for (const char* policy : {"fp32", "fp16_mixed"}) {
    INFO(policy);
    TrainConfig config = small_config("unet", policy);
    config.loss_scale = "1024";
    CHECK(train(config, CornerPixels(1)).metric > 90);
  }
}

TEST_CASE("the residual network finds the bright quarter, in FP32 and FP16", "[vision][long]") {
  for (const char* policy : {"fp32", "fp16_mixed"}) {
    INFO(policy);
    TrainConfig config = small_config("resnet18_narrow", policy);
    config.loss_scale = "1024";
    CHECK(train(config, SmallDataset()).metric > 90);
  }
}

TEST_CASE("a detector trains on images whose anchors match nothing", "[vision][long]") {
  for (const char* model : {"ssd", "faster_rcnn", "mask_rcnn"}) {
    for (const Show show : {Show::nothing, Show::far_boxes}) {
      for (const char* policy : {"fp32", "fp16_mixed"}) {
        INFO(model << ", " << policy);
        TrainConfig config = small_config(model, policy);
        config.steps = 10;
        const Evaluation evaluation = train(config, Corners(show));
        CHECK(std::isfinite(evaluation.loss));
        CHECK(evaluation.metric == 0);
      }
    }
  }
}

/// One step's loss before any update.
float first_loss(const TrainConfig& config, const Dataset& dataset) {
  return Trainer(config, dataset).step().loss;
}

/// The cross entropy of one anchor's class, from its logits.
double cross_entropy(std::span<const float> logits, std::int32_t label) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit});
  return std::log(sum) - double{logits[static_cast<std::size_t>(label)]};
}

double smooth_l1_of(std::span<const float> offsets, std::span<const float> targets) {
  double sum = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const double away = std::abs(double{offsets[i]} - double{targets[i]});
    sum += away < 1 ? away * away / 2 : away - 0.5;
  }
  return sum;
}

/// The detector's loss of a batch of eight, as it is and from its predictions.
struct DetectorLoss {
  float found = 0;
  double expected = 0;
  std::size_t anchors = 0, matched = 0;
};

DetectorLoss detector_loss(Show show) {
  const std::array<std::int64_t, 8> examples{0, 1, 2, 3, 4, 5, 6, 7};
  const Batch batch = Corners(show).batch(Split::train, examples);
  const Model model = ssd_kind.make({.example_shape = {32, 32, 1}, .class_count = 4});
  TrackerList nobody;
  Caster caster({}, 0, nobody);
  Tape tape(caster, Phase::training);
  const BatchOutcome outcome = model.forward(tape, batch);
  const std::vector<Box> anchors =
      make_anchors(std::array{AnchorGrid{8, 8, 4, {20, 24, 28}}, AnchorGrid{4, 4, 8, {24, 30, 36}}});
  const AnchorTargets targets = assign_targets(anchors, batch.boxes, 8);
  const std::span<const float> logits = tape.value(outcome.predictions[0]).values(),
                               offsets = tape.value(outcome.predictions[1]).values();
  DetectorLoss loss{tape.value(outcome.loss).item(), 0, targets.labels.size(), targets.matched.size()};
  for (std::size_t row = 0; row < loss.anchors; ++row)
    loss.expected += cross_entropy(logits.subspan(5 * row, 5), targets.labels[row]);
  for (std::size_t i = 0; i < loss.matched; ++i)
    loss.expected += smooth_l1_of(offsets.subspan(4 * static_cast<std::size_t>(targets.matched[i]), 4),
                                  std::as_const(targets).offsets.values().subspan(4 * i, 4));
  loss.expected /= static_cast<double>(loss.anchors);
  return loss;
}

TEST_CASE("the detector's loss divides by all anchors, matched or not", "[vision]") {
  for (const Show show : {Show::nothing, Show::boxes}) {
    const DetectorLoss loss = detector_loss(show);
    CHECK(loss.anchors == 8 * 240);
    CHECK((loss.matched > 0) == (show == Show::boxes));
    CHECK(loss.matched < loss.anchors / 4);
    // Each addition rounds to 2^-24 of a sum that is no larger than the result.
    CHECK(loss.found == Approx(loss.expected).epsilon(static_cast<double>(loss.anchors) * 0x1p-24));
  }
}

std::size_t weights(const Model& model) {
  std::size_t count = 0;
  for (const Parameter& parameter : model.store->parameters) count += parameter.master.size();
  return count;
}

TEST_CASE("ResNet-18 has the published parameters", "[vision]") {
  // 11,689,512 with ImageNet's stem of 7x7; ours is 3x3.
  const std::size_t imagenet = 11'689'512, stem = 7 * 7 * 3 * 64, small_stem = 3 * 3 * 3 * 64;
  CHECK(weights(resnet18_kind.make({.example_shape = {32, 32, 3}, .class_count = 1000})) ==
        imagenet - stem + small_stem);
  // By layers: a stem, four convolutions per stage, three of its width, and projections between the stages.
  std::size_t narrow = 9 * 8 + 2 * 8, in = 8;
  for (const std::size_t width : {8u, 16u, 32u, 64u}) {
    narrow += 9 * (in * width + 3 * width * width) + 4 * 2 * width;
    if (in != width) narrow += in * width + 2 * width;
    in = width;
  }
  CHECK(weights(resnet18_narrow_kind.make({.example_shape = {28, 28, 1}, .class_count = 10})) ==
        narrow + 64 * 10 + 10);
}

TEST_CASE("the image networks have the published parameters at width 1", "[vision]") {
  const ModelSpec imagenet{
      .example_shape = {224, 224, 3}, .class_count = 1000, .initial = InitialWeights::unset};
  CHECK(weights(alexnet_kind.make(imagenet)) == 60'965'224);
  CHECK(weights(vgg_d_kind.make(imagenet)) == 138'357'544);
  CHECK(weights(resnet50_kind.make(imagenet)) == 25'557'032);
  // Instead of the norms behind its convolutions those before them: of a bottleneck's input and twice of its
  // middle, none of a projection, and one at the end.
  std::size_t preactivated = 25'557'032 - 2 * 64 + 2 * 2048, before = 64;
  for (const auto& [count, middle] : {std::pair{3, 64u}, {4, 128u}, {6, 256u}, {3, 512u}}) {
    preactivated -= 2 * 4 * middle;
    for (int i = 0; i < count; ++i, before = 4 * middle)
      preactivated = preactivated + 2 * (before + 2 * middle) - 2 * 6 * middle;
  }
  CHECK(weights(resnet50_preact_kind.make(imagenet)) == preactivated);
  // At an eighth of the width by layers, on images whose last map has 4x4 and 1x1 pixels.
  ModelSpec small{.example_shape = {28, 28, 1}, .class_count = 10, .options = {{"width", 0.125}}};
  CHECK(weights(alexnet_kind.make(small)) == (25 * 12 + 12) + (25 * 6 * 32 + 32) + (9 * 32 * 48 + 48) +
                                                 (9 * 24 * 48 + 48) + (9 * 24 * 32 + 32) +
                                                 (3 * 3 * 32 * 512 + 512) + (512 * 512 + 512) + 5130);
  std::size_t vgg = 0, in = 1;
  for (const auto& [count, out] : {std::pair{2, 8u}, {2, 16u}, {3, 32u}, {3, 64u}, {3, 64u}}) {
    for (int i = 0; i < count; ++i, in = out) vgg += 9 * in * out + out;
  }
  CHECK(weights(vgg_d_kind.make(small)) == vgg + (64 * 512 + 512) + (512 * 512 + 512) + 5130);
}

TEST_CASE("the image networks find the bright quarter, in FP32 and FP16", "[vision][long]") {
  for (const char* model : {"alexnet", "vgg_d", "resnet50", "resnet50_preact"}) {
    for (const char* policy : {"fp32", "fp16_mixed"}) {
      INFO(model << ", " << policy);
      TrainConfig config = small_config(model, policy);
      config.learning_rate = 1e-3;
      config.steps = 250;
      if (std::string_view(model).starts_with("resnet50")) {
        config.optimizer = "sgd";
        config.learning_rate = 0.05;
        config.model_options = own_options(model, {{"residual_gamma", 0}});
        config.batch = 32;
        config.steps = 60;
      }
      CHECK(train(config, SmallDataset()).metric > 90);
    }
  }
}

TEST_CASE("the image networks take images of any size, and nothing else", "[vision]") {
  TrackerList none;
  Caster caster({}, 0, none);
  for (const auto& make : {alexnet_kind.make, vgg_d_kind.make, googlenet_kind.make, inception_v2_kind.make,
                           inception_v3_kind.make, resnet50_kind.make, resnet50_preact_kind.make}) {
    for (const Shape& shape : {Shape{28, 28, 1}, Shape{7, 5, 2}, Shape{1, 1, 3}, Shape{129, 140, 1}}) {
      INFO(to_string(shape));
      const Model model = make({.example_shape = shape, .class_count = 10, .options = {{"width", 0.05}}});
      Tape tape(caster, Phase::training);
      Batch batch{.inputs = Array::zeros({2, shape[0], shape[1], shape[2]}), .labels = {3, 9}};
      CHECK(tape.value(model.forward(tape, batch).predictions.at(0)).size() == 2 * 10);
    }
    for (const Shape& shape : {Shape{28, 28}, Shape{0, 28, 1}}) {
      check_says(
          message_of<InvalidArgument>([&] { (void)make({.example_shape = shape, .class_count = 10}); }),
          {"takes images", to_string(shape)});
    }
  }
}

TEST_CASE("ResNet-18 takes images of any size, and nothing else", "[vision]") {
  TrackerList none;
  Caster caster({}, 0, none);
  for (const Shape& shape : {Shape{28, 28, 1}, Shape{7, 5, 2}, Shape{1, 1, 3}}) {
    INFO(to_string(shape));
    const Model model = resnet18_narrow_kind.make({.example_shape = shape, .class_count = 10});
    Tape tape(caster, Phase::training);
    Batch batch{.inputs = Array::zeros({2, shape[0], shape[1], shape[2]}), .labels = {3, 9}};
    const BatchOutcome outcome = model.forward(tape, batch);
    CHECK(tape.value(outcome.predictions.at(0)).shape() == Shape{2, 10});
    CHECK(tape.value(outcome.loss).item() == Approx(std::log(10.0)));  // zeros in: every class alike
  }
  for (const Shape& shape : {Shape{28, 28}, Shape{0, 28, 1}}) {
    check_says(message_of<InvalidArgument>(
                   [&] { (void)resnet18_kind.make({.example_shape = shape, .class_count = 10}); }),
               {"model resnet18", to_string(shape)});
  }
}

TEST_CASE("the vision models have the recipe's parameters", "[vision]") {
  const ModelSpec spec{.example_shape = {64, 64, 1}, .class_count = 10};
  CHECK(weights(ssd_kind.make(spec)) ==
        9 * (16 + 16 * 32 + 32 * 64 + 64 * 64 + 2 * 64 * 45) + 16 + 32 + 64 + 64 + 90);
  CHECK(weights(ssd_vgg_kind.make(spec)) ==
        9 * (16 + 16 * 16 + 16 * 32 + 32 * 32 + 32 * 64 + 3 * 64 * 64 + 2 * 64 * 45) +
            2 * (16 + 32 + 64 + 64) + 90);
  CHECK(weights(faster_rcnn_kind.make(spec)) ==
        9 * (16 + 16 * 16 + 16 * 32 + 32 * 32 + 32 * 64 + 64 * 64) + 2 * (16 + 32 + 64)  // backbone
            + 9 * 64 * 64 + 64 + (64 + 1) * 3 * (2 + 4)                                  // first stage
            + (4 * 4 * 64 + 1) * 128 + (128 + 1) * (128 + 11 + 40));                     // second stage
  CHECK(weights(mask_rcnn_kind.make(spec)) - weights(faster_rcnn_kind.make(spec)) ==
        (9 * 64 + 1) * 64 + (9 * 64 + 1) * 32 + (32 + 1) * 10);
  ModelSpec pixels = spec;
  pixels.class_count = 11;
  CHECK(weights(unet_kind.make(pixels)) == 9 * (16 + 16 * 32 + 32 * 64 + 64 * 64 + 64 * 32 + 48 * 16) +
                                               16 * 11 + 16 + 32 + 64 + 64 + 32 + 16 + 11);
}

TEST_CASE("vision models refuse images that they cannot pool", "[vision]") {
  for (const std::string name : {"ssd", "ssd_vgg", "unet"}) {
    const ModelKind& model = find_in_table("model", name, model_table).kind;
    for (const Shape& shape : {Shape{36, 64, 1}, Shape{64, 44, 1}, Shape{0, 64, 1}, Shape{32}}) {
      check_says(
          message_of<InvalidArgument>([&] { (void)model.make({.example_shape = shape, .class_count = 10}); }),
          {"model " + name, "multiples of 8", to_string(shape)});
    }
  }
}

TEST_CASE("the two-stage detector refuses images that are too small or cannot be pooled", "[vision]") {
  for (const Shape& shape :
       {Shape{12, 64, 1}, Shape{64, 12, 1}, Shape{64, 42, 1}, Shape{0, 64, 1}, Shape{32}}) {
    check_says(message_of<InvalidArgument>(
                   [&] { (void)faster_rcnn_kind.make({.example_shape = shape, .class_count = 10}); }),
               {"model faster_rcnn", "multiples of 4 from 16 on", to_string(shape)});
  }
}

TEST_CASE("vision models refuse batches without what they learn from", "[vision]") {
  for (const std::string name : {"ssd", "ssd_vgg", "faster_rcnn"}) {
    check_says(message_of<InvalidArgument>([&] { (void)first_loss(small_config(name), CornerPixels(1)); }),
               {"model " + name, "boxes", "detection_scenes"});
  }
  check_says(message_of<InvalidArgument>([&] { (void)first_loss(small_config("unet"), CornerPixels(1024)); }),
             {"model unet", "8 images of 32x32", "8 labels", "segmentation_scenes"});
  check_says(message_of<InvalidArgument>([&] { (void)first_loss(small_config("unet"), Corners()); }),
             {"model unet", "0 labels"});
  for (const std::int32_t wrong : {-4, 4}) {
    for (const std::string name : {"ssd", "faster_rcnn"}) {
      check_says(message_of<InvalidArgument>(
                     [&] { (void)first_loss(small_config(name), Corners(Show::boxes, wrong)); }),
                 {"model " + name, "class", "0 to 3"});
    }
  }
}

/// Corners whose masks are lost.
class Unmasked final : public Dataset {
 public:
  [[nodiscard]] std::int64_t size(Split split) const override { return corners_.size(split); }
  [[nodiscard]] Shape example_shape() const override { return corners_.example_shape(); }
  [[nodiscard]] std::int64_t class_count() const override { return corners_.class_count(); }
  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    Batch batch = corners_.batch(split, indices);
    batch.masks.clear();
    return batch;
  }

 private:
  Corners corners_;
};

TEST_CASE("the mask head refuses a batch without masks, which the boxes alone do not need", "[vision]") {
  check_says(message_of<InvalidArgument>([] { (void)first_loss(small_config("mask_rcnn"), Unmasked()); }),
             {"model mask_rcnn", "a mask label per pixel", "0 for 8 images", "detection_scenes"});
  CHECK(first_loss(small_config("faster_rcnn"), Unmasked()) ==
        first_loss(small_config("faster_rcnn"), Corners()));
}

TEST_CASE("the mask head's logits start near even odds and learn the squares", "[vision][long]") {
  // The five losses of the first step but the masks' are those of the detector without the head.
  const float before =
      first_loss(small_config("mask_rcnn"), Corners()) - first_loss(small_config("faster_rcnn"), Corners());
  CHECK(before > 0.5f);
  CHECK(before < 1.0f);
  const auto after = [](const char* model) { return train(small_config(model), Corners()).loss; };
  CHECK(after("mask_rcnn") < before);
}

TEST_CASE("the detection metric reads logits and offsets, batch by batch", "[vision]") {
  const std::vector<Box> anchors{{.top = 0, .left = 0, .bottom = 8, .right = 8},
                                 {.top = 20, .left = 20, .bottom = 28, .right = 28}};
  TrackerList none;
  Caster caster({}, 0, none);
  const auto metric = make_detection_metric(anchors);
  for (int batch_index = 0; batch_index < 2; ++batch_index) {
    Tape tape(caster, Phase::evaluation);
    // One image: the first anchor is of class 1 (box label 0), the second is background; in the second batch
    // the classes are the other way round, but the box is not.
    const float sure = batch_index == 0 ? 10.0f : 0.0f;
    const TensorRef logits = tape.input("l", Array::from({2, 3}, {0, sure, 0, 10 - sure + 10, 10 - sure, 0}));
    const TensorRef offsets = tape.input("o", Array::zeros({2, 4}));
    Batch batch{.inputs = Array::zeros({1, 32, 32, 1})};
    batch.boxes.push_back({0, 0, 0, 0, 8, 8});
    metric->add(tape, {offsets, {logits, offsets}}, batch);
    if (batch_index == 0) CHECK(metric->value() == 1);
  }
  CHECK(metric->value() > 0.5);
}

TEST_CASE("the detection metric reads each class's offsets from the starts of an outcome", "[vision]") {
  TrackerList none;
  Caster caster({}, 0, none);
  Tape tape(caster, Phase::evaluation);
  const auto metric = make_detection_metric({});
  // Two images with one row and two rows; only the last is sure, of the second class, whose offsets move it
  // by 10 % of its height: onto the box, as those of the first class would not.
  const TensorRef logits = tape.input("l", Array::from({3, 3}, {20, 0, 0, 20, 0, 0, 0, 0, 20}));
  Array moved = Array::zeros({3, 8});
  moved[2 * 8] = -20;
  moved[2 * 8 + 4] = 1;
  const TensorRef offsets = tape.input("o", std::move(moved));
  Batch batch{.inputs = Array::zeros({2, 32, 32, 1})};
  batch.boxes.push_back({1, 1, 11, 10, 21, 20});
  const std::vector<Box> starts{{0, 0, 0, 0, 8, 8}, {1, 0, 0, 0, 8, 8}, {1, 0, 10, 10, 20, 20}};
  metric->add(tape, {offsets, {logits, offsets}, starts}, batch);
  CHECK(metric->value() == 1);
}

}  // namespace
}  // namespace halfscope::vision_models_test
