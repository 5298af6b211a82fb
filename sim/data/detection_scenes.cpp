// Scenes with the boxes of their items: the data set of a detector.
#include "sim/data/dataset_options.hpp"
#include "sim/data/datasets.hpp"

#include "sim/data/scenes.hpp"

namespace halfscope {
namespace {

class DetectionScenes final : public Dataset {
 public:
  explicit DetectionScenes(const DatasetSpec& spec) : scenes_(spec, "detection_scenes") {}

  [[nodiscard]] std::int64_t size(Split split) const override { return scenes_.size(split); }
  [[nodiscard]] Shape example_shape() const override { return scenes_.example_shape(); }
  [[nodiscard]] std::int64_t class_count() const override { return fashion_mnist_classes; }
  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    return scenes_.boxes(split, indices);
  }

 private:
  Scenes scenes_;
};

std::unique_ptr<Dataset> open_detection_scenes(const DatasetSpec& spec) {
  return std::make_unique<DetectionScenes>(spec);
}

}  // namespace

constexpr DatasetKind detection_scenes_kind{.data = DataKind::images,
                                            .open = open_detection_scenes,
                                            .options = {image_size_option},
                                            .default_data = fashion_mnist_folder};

}  // namespace halfscope
