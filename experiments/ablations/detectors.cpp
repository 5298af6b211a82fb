// The detectors of Table 2: one that needs loss scaling, and one that does not.
#include "experiments/ablations/experiments.hpp"

#include <fmt/format.h>

#include <array>

#include "experiments/ablations/detection_loss_scale.hpp"
#include "experiments/runner/settings.hpp"
#include "experiments/runner/verdict_text.hpp"

namespace halfscope {
namespace detectors {
namespace {

constexpr const char* paper_statement =
    "Table 2 (Pascal VOC 2007, mAP): Faster R-CNN 69.1 in FP32, 68.6 in mixed precision, 69.7 with loss "
    "scaling; Multibox SSD 76.9, diverges, and 77.1 with a loss scale of 8.";

/// AP50 that separates harm from the noise between roundings.
constexpr double close = 0.04;

struct Detector {
  std::string_view name;
  std::string_view words;
  std::vector<int> scales;  ///< of its FP16 arms
  Settings settings, full_settings;
};

const std::array<Detector, 2>& detectors() {
  static const std::array table{
      Detector{
          "ssd",
          "SSD",
          {1, 8, 128},
          // As many anchors as the small SSD's: half its batch, twice the share that the weight stands for.
          with(detection_settings(), {{"model", "ssd_vgg"},
                                      {"steps", "250"},
                                      {"batch", "8"},
                                      {"loss_weight", "0.001953125"},
                                      {"evaluate_every", "0"}}),
          detection_full_settings()},
      Detector{"faster_rcnn",
               "Faster R-CNN",
               {1, 128},
               {{"model", "faster_rcnn"},
                {"dataset", "detection_scenes"},
                {"steps", "250"},
                {"batch", "8"},
                {"optimizer", "sgd"},
                {"learning_rate", "0.02"},
                {"schedule", "cosine"},
                {"warmup_steps", "20"}},
               {{"batch", "64"}}}};
  return table;
}

std::string arm_name(const Detector& detector, std::string_view suffix) {
  return fmt::format("{}_{}", detector.name, suffix);
}

std::vector<Arm> arms() {
  std::vector<Arm> all;
  for (const Detector& detector : detectors()) {
    const auto add = [&](const std::string& suffix, const std::string& precision, const Settings& settings) {
      all.push_back({arm_name(detector, suffix), fmt::format("{}; {}", detector.words, precision),
                     with(detector.settings, settings), detector.full_settings});
    };
    add("fp32", "everything in FP32", {{"policy", "fp32"}});
    for (const int scale : detector.scales) {
      add(fmt::format("s{}", scale), fmt::format("FP16 tensors, FP32 master weights, loss scale {}", scale),
          {{"policy", "fp16_mixed"}, {"loss_scale", fmt::format("{}", scale)}});
    }
    add("no_master", "loss scale 128 and weights stored in FP16 only",
        {{"policy", "fp16_no_master"}, {"loss_scale", "128"}});
  }
  return all;
}

std::vector<Expectation> expectations() {
  return {{"ssd_s1", "ssd_fp32", Expected::worse, close},
          {"ssd_s8", "ssd_fp32", Expected::as_good, close},
          {"ssd_s128", "ssd_fp32", Expected::as_good, close},
          {"faster_rcnn_s1", "faster_rcnn_fp32", Expected::as_good, close},
          {"faster_rcnn_s128", "faster_rcnn_fp32", Expected::as_good, close},
          {"faster_rcnn_no_master", "faster_rcnn_fp32", Expected::as_good, close}};
}

/// mAP as a fraction, as our AP50 is. The table has a column without and one with loss scaling: a row for
/// each.
std::vector<PublishedRow> published() {
  constexpr double ssd = 0.769, faster_rcnn = 0.691;
  return {{"SSD, no loss scaling", "ssd_fp32", "ssd_s1", ssd, std::nullopt},
          {"SSD, loss scale 8", "ssd_fp32", "ssd_s8", ssd, 0.771},
          {"Faster R-CNN, no loss scaling", "faster_rcnn_fp32", "faster_rcnn_s1", faster_rcnn, 0.686},
          {"Faster R-CNN, loss scale 128", "faster_rcnn_fp32", "faster_rcnn_s128", faster_rcnn, 0.697}};
}

/// "with a loss scale of 8 ARM ends ...; without a master copy ARM ends ..."
std::string beside_fp32(const ExperimentSummary& summary, const Detector& detector) {
  const std::string fp32 = arm_name(detector, "fp32");
  std::string text;
  for (const int scale : detector.scales) {
    text += scale == 1 ? "without loss scaling " : fmt::format("; with a loss scale of {} ", scale);
    text += against_baseline(summary, arm_name(detector, fmt::format("s{}", scale)), fp32);
  }
  return text + "; without a master copy " + against_baseline(summary, arm_name(detector, "no_master"), fp32);
}

std::string verdict(const ExperimentSummary& summary) {
  const Detector &ssd = detectors()[0], &faster_rcnn = detectors()[1];
  std::string text = fmt::format("SSD (paper: 76.9, diverges without, 77.1 with a loss scale of 8): {}. ",
                                 beside_fp32(summary, ssd));
  text += fmt::format("Faster R-CNN (paper: 69.1, 68.6 without, 69.7 with loss scaling): {}. ",
                      beside_fp32(summary, faster_rcnn));
  return text +
         "SSD averages its loss over every anchor of the batch, 3.9 million terms, so that most gradients "
         "are below FP16's smallest number. Faster R-CNN averages over what it samples, at most 64 anchors "
         "and 16 regions of an image: 512 and 128 terms of 8 images.";
}

}  // namespace
}  // namespace detectors

Experiment make_detectors() {
  using namespace detectors;
  return {.name = "detectors",
          .summary =
              "SSD and Faster R-CNN with and without loss scaling: AP50 over scenes of Fashion-MNIST items",
          .paper = paper_statement,
          .claim = {"SSD needs loss scaling, and a factor of 8 is enough; Faster R-CNN trains without.",
                    expectations()},
          .metric = {.name = "AP50", .unit = "", .comparison = Comparison::difference, .digits = 3},
          .settings = {{"observe_every", "25"}},
          .varied = {"model", "policy", "loss_scale"},
          .arms = arms(),
          .quick_arms = {"ssd_fp32", "ssd_s1", "ssd_s8", "faster_rcnn_fp32", "faster_rcnn_s1",
                         "faster_rcnn_no_master"},
          .quick_set = QuickSet::left_out,
          .published = published(),
          .verdict = verdict};
}

}  // namespace halfscope
