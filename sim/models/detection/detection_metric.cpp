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
  std::span<const Box> starts;
  const float* logits;   // (starts, classes)
  const float* offsets;  // (starts, offset_columns)
  std::size_t classes;
  std::size_t offset_columns;
};

/// Adds what an image may show to its `candidates`, by class.
void detect(const ImagePredictions& image, std::span<std::vector<Detection>> candidates) {
  std::vector<float> probability(image.classes);
  for (std::size_t a = 0; a < image.starts.size(); ++a) {
    softmax(image.logits + a * image.classes, probability);
    for (std::size_t c = 1; c < image.classes; ++c) {
      // A NaN is no detection.
      if (!(probability[c] >= least_score)) continue;
      BoxOffsets offsets{};
      const std::size_t own = image.offset_columns == offsets.size() ? 0 : (c - 1) * offsets.size();
      std::copy_n(image.offsets + a * image.offset_columns + own, offsets.size(), offsets.begin());
      Detection& detection =
          candidates[c - 1].emplace_back(Detection{decode_box(offsets, image.starts[a]), probability[c]});
      detection.box.label = static_cast<std::int32_t>(c - 1);
    }
  }
}

/// The rows of each image: so many anchors, or the starts that name it.
std::vector<std::span<const Box>> starts_of(std::span<const Box> anchors, std::span<const Box> starts,
                                            std::size_t images) {
  if (starts.empty()) return std::vector(images, anchors);
  std::vector<std::span<const Box>> rows;
  for (std::size_t n = 0, first = 0; n < images; ++n) {
    std::size_t last = first;
    while (last < starts.size() && starts[last].example == static_cast<std::int32_t>(n)) ++last;
    rows.push_back(starts.subspan(first, last - first));
    first = last;
  }
  return rows;
}

class DetectionMetric final : public Metric {
 public:
  explicit DetectionMetric(std::vector<Box> anchors) : anchors_(std::move(anchors)) {}

  void add(const Tape& tape, const BatchOutcome& outcome, const Batch& batch) override {
    const Array logits = to_host_floats(tape.value(outcome.predictions.at(0)));
    const Array offsets = to_host_floats(tape.value(outcome.predictions.at(1)));
    const std::int64_t images = batch.inputs.extent(0);
    const auto classes = static_cast<std::size_t>(logits.extent(1)), shown = classes - 1;
    const auto offset_columns = static_cast<std::size_t>(offsets.extent(1));
    const auto starts = starts_of(anchors_, outcome.starts, static_cast<std::size_t>(images));
    std::vector<std::size_t> first_row;
    for (std::size_t n = 0, row = 0; n < starts.size(); row += starts[n++].size()) first_row.push_back(row);
    std::vector<std::vector<Detection>> found(static_cast<std::size_t>(images) * shown);
    parallel_for(images, [&](std::int64_t n) {
      const auto image = static_cast<std::size_t>(n), row = first_row[image];
      detect({starts[image], logits.data() + row * classes, offsets.data() + row * offset_columns, classes,
              offset_columns},
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
