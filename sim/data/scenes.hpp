// Scenes composed from the images of Fashion-MNIST: a few items of known place and class on an empty
// image_size.
#pragma once

#include <array>
#include <string>

#include "sim/data/dataset.hpp"
#include "sim/data/fashion_mnist.hpp"

namespace halfscope {

/// 1 to 3 items per scene, and as many times that as the image_size holds one of 64 by 64: 64 to 192 at 512
/// by 512. Each is scaled (bilinearly) to a square of 20 to 36 pixels; they overlap by at most 4 pixels in
/// one direction, and where they do, the brighter one shows. Normal noise of deviation 0.05 is added to
/// brightnesses of 0 to 1, and the sum is doubled. Train scenes show items of the training set, test scenes
/// of the test set. A scene is a function of its split and index alone: the same for every run and arm.
class Scenes {
 public:
  /// Reads the items from `spec.data`; `owner` names the data set in errors. Throws InvalidArgument for a
  /// image_size that is smaller than the largest item, and as `read_fashion_mnist` does.
  Scenes(const DatasetSpec& spec, std::string owner);

  [[nodiscard]] std::int64_t size(Split split) const { return split == Split::train ? 3000 : 200; }
  /// (image_size, image_size, 1)
  [[nodiscard]] Shape example_shape() const { return {image_size_, image_size_, 1}; }

  /// Images (batch, image_size, image_size, 1), the boxes of their items, labelled with the items' classes,
  /// and the labels of `pixel_labels` as masks. Throws InvalidArgument for an index out of range.
  [[nodiscard]] Batch boxes(Split split, std::span<const std::int64_t> indices) const;
  /// The same images, and a label per pixel: 1 + the class of the brightest item there, 0 where none is
  /// brighter than 0.15.
  [[nodiscard]] Batch pixel_labels(Split split, std::span<const std::int64_t> indices) const;

 private:
  struct Layout;
  [[nodiscard]] Layout layout(Split split, std::int64_t index) const;
  [[nodiscard]] Batch compose(Split split, std::span<const Layout> layouts) const;
  [[nodiscard]] std::vector<Layout> layouts(Split split, std::span<const std::int64_t> indices) const;

  std::array<LabelledImages, 2> items_;
  std::int64_t image_size_;
  std::string owner_;
};

}  // namespace halfscope
