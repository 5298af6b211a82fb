// Collects detections over the batches of a test set.
#include "sim/models/detection/detection_metric.hpp"

#include <algorithm>

#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/core/parallel.hpp>

#include "sim/models/detection/average_precision.hpp"

namespace halfscope {
namespace {

constexpr float least_score = 0.01f, most_overlap = 0.45f;

/// probability (classes) = softmax of the logits.
void softmax(const float* logits, std::span<float> probability) {
  const float largest = *std::max_element(logits, logits + probability.size());
  float sum = 0;
  for (std::size_t c = 0; c < probability.size(); ++c) sum += probability[c] = exp(logits[c] - largest);
  for (float& p : probability) p /= sum;
}

/// The rows of one image.
struct ImagePredictions {
  const float* logits;   // (anchors, classes)
  const float* offsets;  // (anchors, 4)
  std::size_t classes;
};

/// Adds what an image may show to its `candidates`, by class.
void detect(const ImagePredictions& image, std::span<const Box> anchors,
            std::span<std::vector<Detection>> candidates) {
  std::vector<float> probability(image.classes);
  for (std::size_t a = 0; a < anchors.size(); ++a) {
    softmax(image.logits + a * image.classes, probability);
    BoxOffsets offsets{};
    std::copy_n(image.offsets + a * offsets.size(), offsets.size(), offsets.begin());
    const Box box = decode_box(offsets, anchors[a]);
    for (std::size_t c = 1; c < image.classes; ++c) {
      // A NaN is no detection.
      if (!(probability[c] >= least_score)) continue;
      Detection& detection = candidates[c - 1].emplace_back(Detection{box, probability[c]});
      detection.box.label = static_cast<std::int32_t>(c - 1);
    }
  }
}

class DetectionMetric final : public Metric {
 public:
  explicit DetectionMetric(std::vector<Box> anchors) : anchors_(std::move(anchors)) {}

  void add(const Tape& tape, const BatchOutcome& outcome, const Batch& batch) override {
    const Array logits = to_host_floats(tape.value(outcome.predictions.at(0)));
    const Array offsets = to_host_floats(tape.value(outcome.predictions.at(1)));
    const std::int64_t images = batch.inputs.extent(0);
    const auto classes = static_cast<std::size_t>(logits.extent(1)), shown = classes - 1;
    std::vector<std::vector<Detection>> found(static_cast<std::size_t>(images) * shown);
    parallel_for(images, [&](std::int64_t n) {
      const auto image = static_cast<std::size_t>(n), row = image * anchors_.size();
      detect({logits.data() + row * classes, offsets.data() + row * box_offsets, classes}, anchors_,
             std::span(found).subspan(image * shown, shown));
    });
    // By class too: a batch of large images is one image.
    parallel_for(static_cast<std::int64_t>(found.size()), [&](std::int64_t i) {
      auto& of_class = found[static_cast<std::size_t>(i)];
      of_class = suppress(std::move(of_class), most_overlap);
    });
    for (std::size_t i = 0; i < found.size(); ++i) {
      for (Detection& detection : found[i]) {
        detection.box.example = images_ + static_cast<std::int32_t>(i / shown);
        detections_.push_back(detection);
      }
    }
    for (Box box : batch.boxes) {
      box.example += images_;
      truth_.push_back(box);
    }
    images_ += static_cast<std::int32_t>(images);
  }

  [[nodiscard]] double value() const override { return average_precision_50(detections_, truth_); }

 private:
  std::vector<Box> anchors_;
  std::vector<Detection> detections_;
  std::vector<Box> truth_;
  std::int32_t images_ = 0;  ///< so far
};

}  // namespace

std::unique_ptr<Metric> make_detection_metric(std::vector<Box> anchors) {
  return std::make_unique<DetectionMetric>(std::move(anchors));
}

}  // namespace halfscope
