// Scenes with a class for each pixel: the data set of a segmentation.
#include "sim/data/dataset_options.hpp"
#include "sim/data/datasets.hpp"

#include "sim/data/scenes.hpp"

namespace halfscope {
namespace {

class SegmentationScenes final : public Dataset {
 public:
  explicit SegmentationScenes(const DatasetSpec& spec) : scenes_(spec, "segmentation_scenes") {}

  [[nodiscard]] std::int64_t size(Split split) const override { return scenes_.size(split); }
  [[nodiscard]] Shape example_shape() const override { return scenes_.example_shape(); }
  [[nodiscard]] std::int64_t class_count() const override { return 1 + fashion_mnist_classes; }
  [[nodiscard]] Batch batch(Split split, std::span<const std::int64_t> indices) const override {
    return scenes_.pixel_labels(split, indices);
  }

 private:
  Scenes scenes_;
};

std::unique_ptr<Dataset> open_segmentation_scenes(const DatasetSpec& spec) {
  return std::make_unique<SegmentationScenes>(spec);
}

}  // namespace

constexpr DatasetKind segmentation_scenes_kind{.data = DataKind::images,
                                               .open = open_segmentation_scenes,
                                               .options = {image_size_option},
                                               .default_data = fashion_mnist_folder};

}  // namespace halfscope
