// Offsets of patches, computed once per shape.
#include "sim/layers/patches.hpp"

#include <array>
#include <map>
#include <tuple>
#include <vector>

#include <halfscope/kernel/gemm/gemm.hpp>

namespace halfscope {
namespace {

PatchOffsets compute_offsets(const ImageShape& shape, const PatchGrid& grid, std::int64_t group_channels) {
  const std::int64_t padded_row = (shape.width + 2 * grid.border.columns) * shape.channels;
  const std::int64_t padded_image = (shape.height + 2 * grid.border.rows) * padded_row;
  (void)strided_offsets(1, shape.batch * padded_image);  // throws where offsets do not fit
  const std::int64_t down = grid.down(shape.height), across = grid.across(shape.width);
  std::vector<std::int32_t> position, element;
  position.reserve(static_cast<std::size_t>(shape.batch * down * across));
  for (std::int64_t n = 0; n < shape.batch; ++n) {
    for (std::int64_t y = 0; y < down; ++y) {
      const std::int64_t row = n * padded_image + y * grid.stride.rows * padded_row;
      for (std::int64_t i = 0; i < across; ++i) {
        position.push_back(static_cast<std::int32_t>(row + i * grid.stride.columns * shape.channels));
      }
    }
  }
  for (std::int64_t y = 0; y < grid.height; ++y) {
    for (std::int64_t i = 0; i < grid.width; ++i) {
      for (std::int64_t c = 0; c < group_channels; ++c) {
        element.push_back(static_cast<std::int32_t>(y * padded_row + i * shape.channels + c));
      }
    }
  }
  const bool pixels = grid.height == 1 && grid.width == 1 && grid.stride == Stride{} &&
                      grid.border.rows == 0 && grid.border.columns == 0 && group_channels == shape.channels;
  return {Memory<std::int32_t>::from(position), Memory<std::int32_t>::from(element),
          pixels ? shape.channels : 0};
}

/// The same every step, so they are computed once per device and shape; the network's own thread is the only
/// caller.
std::shared_ptr<const PatchOffsets> offsets_of(const ImageShape& shape, const PatchGrid& grid,
                                               std::int64_t group_channels) {
  using Key = std::tuple<Device, std::array<std::int64_t, 11>>;
  constexpr std::size_t most_kept = 256;  // a network of a hundred convolutions, forward and backward
  thread_local std::map<Key, std::shared_ptr<const PatchOffsets>> kept;
  const Key key{
      active_device(),
      {shape.batch, shape.height, shape.width, shape.channels, grid.height, grid.width, grid.border.rows,
       grid.border.columns, grid.stride.rows, grid.stride.columns, group_channels}};
  const auto found = kept.find(key);
  if (found != kept.end()) return found->second;
  if (kept.size() == most_kept) kept.clear();
  return kept[key] = std::make_shared<const PatchOffsets>(compute_offsets(shape, grid, group_channels));
}

}  // namespace

Patches patches_of(const Array& x, const ImageShape& shape, const PatchGrid& grid,
                   std::int64_t group_channels) {
  auto offsets = offsets_of(shape, grid, group_channels);
  const Border& border = grid.border;
  Array images(
      {shape.batch, shape.height + 2 * border.rows, shape.width + 2 * border.columns, shape.channels},
      x.dtype());
  pad_images(x.view(), shape, border, images.view());
  return {std::move(images), std::move(offsets)};
}

}  // namespace halfscope
