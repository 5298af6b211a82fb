// Patches of zero-padded images: what a convolution multiplies with its weight.
#pragma once

#include <cstdint>
#include <memory>

#include <halfscope/device/array.hpp>

#include "lib/nn/elementwise.hpp"
#include "lib/nn/stride.hpp"

namespace halfscope {

/// Patches of a kernel's size, their corners `stride` pixels apart in the image and its border.
struct PatchGrid {
  std::int64_t height = 1, width = 1;  ///< the kernel's extents
  Border border{};
  Stride stride{};

  /// Patches below and beside one another in an image of so many rows and columns.
  [[nodiscard]] std::int64_t down(std::int64_t rows) const {
    return (rows + 2 * border.rows - height) / stride.rows + 1;
  }
  [[nodiscard]] std::int64_t across(std::int64_t columns) const {
    return (columns + 2 * border.columns - width) / stride.columns + 1;
  }
};

/// Where the patches of padded images lie: patch p's element k is images[position[p] + element[k]].
struct PatchOffsets {
  Memory<std::int32_t> position;  // (batch * patches down * patches across)
  Memory<std::int32_t> element;   // (height * width * channels of a group)
  std::int64_t stride = 0;        ///< where patches are all the pixels, one each: their channels; else 0
};

/// Padded images and the offsets of their patches.
struct Patches {
  Array images;  // (batch, height + 2 rows, width + 2 columns, channels)
  std::shared_ptr<const PatchOffsets> offsets;

  /// The images from the first channel of a group on.
  [[nodiscard]] ConstArrayView from_channel(std::int64_t channel) const {
    const auto first = static_cast<std::size_t>(channel);
    return images.view().part(first, images.size() - first);
  }
};

/// The patches of x, of `shape`, with `group_channels` of its channels each. Throws InvalidArgument where
/// offsets do not fit 32 bits.
[[nodiscard]] Patches patches_of(const Array& x, const ImageShape& shape, const PatchGrid& grid,
                                 std::int64_t group_channels);

}  // namespace halfscope
