// Max pooling over regions of images with the channel last: each region becomes a square of the same size.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/core/array_view.hpp>
#include <halfscope/device/memory.hpp>

#include "lib/nn/elementwise.hpp"

namespace halfscope {

/// Pixels of an image, from `top` and `left` to the last before `bottom` and `right`.
struct Region {
  std::int32_t image = 0, top = 0, left = 0, bottom = 0, right = 0;
};

/// Regions of the images of one shape, on the active device. Part p of `size` parts of n pixels has those
/// from p * n / size, rounded down, to (p + 1) * n / size, rounded up: parts may share pixels, and none is
/// empty.
class RegionIndex {
 public:
  /// Throws InvalidArgument for a region that is empty or beyond the images, for one whose image comes before
  /// that of the last, and for a size below 1.
  RegionIndex(std::span<const Region> regions, const ImageShape& images, std::int64_t size);

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(regions_.size()); }
  [[nodiscard]] const ImageShape& images() const { return images_; }
  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] std::span<const Region> regions() const { return regions_.values(); }
  /// The regions of image n are first()[n] to first()[n + 1] - 1.
  [[nodiscard]] std::span<const std::int32_t> first() const { return first_.values(); }

 private:
  ImageShape images_;
  std::int64_t size_;
  Memory<Region> regions_;
  Memory<std::int32_t> first_;
};

/// y (regions, size, size, channels) = the largest number of each part, and winner = the pixel of the image
/// that has it, row by row from 0, the first of equals. Throws InvalidArgument where the sizes do not fit.
void roi_max_pool(const ConstArrayView& x, const RegionIndex& index, const ArrayView& y,
                  std::span<std::int32_t> winner);

/// x_gradient = for each number of the images the sum of the gradients of the parts that it won, added to
/// zero region by region, and in a region part by part, row by row.
void roi_max_pool_gradient(const ConstArrayView& y_gradient, const RegionIndex& index,
                           std::span<const std::int32_t> winner, std::span<float> x_gradient);

/// The same operations on the device, which the functions above call where that is the active one.
namespace cuda {
void roi_max_pool(const ConstArrayView& x, const RegionIndex& index, const ArrayView& y,
                  std::span<std::int32_t> winner);
void roi_max_pool_gradient(const ConstArrayView& y_gradient, const RegionIndex& index,
                           std::span<const std::int32_t> winner, std::span<float> x_gradient);
}  // namespace cuda

}  // namespace halfscope
