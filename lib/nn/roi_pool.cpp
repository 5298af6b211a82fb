// Checks regions and sizes, and loops over regions forward and over images backward.
#include "lib/nn/roi_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include <halfscope/core/parallel.hpp>

#include "lib/nn/roi_pool_element.hpp"

namespace halfscope {
namespace {

void check_region(const Region& region, const ImageShape& images, std::int32_t least_image) {
  if (region.image >= least_image && region.image < images.batch && region.top >= 0 &&
      region.top < region.bottom && region.bottom <= images.height && region.left >= 0 &&
      region.left < region.right && region.right <= images.width) {
    return;
  }
  throw InvalidArgument(
      fmt::format("roi_max_pool: a region of rows {} to {} and columns {} to {} in image {}; regions come "
                  "image by image, "
                  "have a pixel or more and lie within {} images of {}x{}",
                  region.top, region.bottom - 1, region.left, region.right - 1, region.image, images.batch,
                  images.height, images.width));
}

void check_pooled_regions(const RegionIndex& index, std::size_t x, std::size_t y, std::size_t winners) {
  const ImageShape& images = index.images();
  const std::int64_t pixels = images.batch * images.height * images.width;
  if (static_cast<std::int64_t>(x) == pixels * images.channels && y == winners &&
      static_cast<std::int64_t>(y) == index.count() * index.size() * index.size() * images.channels) {
    return;
  }
  throw InvalidArgument(fmt::format(
      "roi_max_pool: images of {} numbers, {} results and {} winners do not have the sizes of {} regions", x,
      y, winners, index.count()));
}

/// The largest numbers of one part, per channel.
struct PartMaximum {
  const float* image;  // (height, width, channels)
  const ImageShape& shape;

  void find(const PartRange& rows, const PartRange& columns, float* largest, std::int32_t* winner) const {
    for (std::int64_t r = rows.first; r < rows.last; ++r) {
      for (std::int64_t c = columns.first; c < columns.last; ++c) {
        const auto pixel = static_cast<std::int32_t>(r * shape.width + c);
        const float* here = image + pixel * shape.channels;
        const bool begins = r == rows.first && c == columns.first;
        for (std::int64_t k = 0; k < shape.channels; ++k) {
          if (!begins && !(here[k] > largest[k])) continue;
          largest[k] = here[k];
          winner[k] = pixel;
        }
      }
    }
  }
};

}  // namespace

RegionIndex::RegionIndex(std::span<const Region> regions, const ImageShape& images, std::int64_t size)
    : images_(images), size_(size) {
  if (size < 1) throw InvalidArgument(fmt::format("roi_max_pool: {} parts to a side; give at least 1", size));
  std::vector<std::int32_t> first(static_cast<std::size_t>(images.batch) + 1);
  std::int32_t image = 0;
  for (const Region& region : regions) {
    check_region(region, images, image);
    image = region.image;
    ++first[static_cast<std::size_t>(image) + 1];
  }
  for (std::size_t n = 1; n < first.size(); ++n) first[n] += first[n - 1];
  regions_ = Memory<Region>::from(regions);
  first_ = Memory<std::int32_t>::from(first);
}

void roi_max_pool(const ConstArrayView& images, const RegionIndex& index, const ArrayView& pooled,
                  std::span<std::int32_t> winner) {
  check_pooled_regions(index, images.size(), pooled.size(), winner.size());
  if (active_device() == Device::cuda) return cuda::roi_max_pool(images, index, pooled, winner);
  const ImageShape& shape = index.images();
  const std::span<const float> x = images.floats();
  const std::span<float> y = pooled.floats();
  const std::int64_t size = index.size();
  parallel_for(index.count(), [&](std::int64_t n) noexcept {
    const Region& region = index.regions()[static_cast<std::size_t>(n)];
    const PartMaximum of_image{x.data() + region.image * shape.height * shape.width * shape.channels, shape};
    for (std::int64_t part = 0; part < size * size; ++part) {
      const std::int64_t at = (n * size * size + part) * shape.channels;
      of_image.find(pixels_of_part(part / size, size, region.top, region.bottom),
                    pixels_of_part(part % size, size, region.left, region.right), y.data() + at,
                    winner.data() + at);
    }
  });
}

void roi_max_pool_gradient(const ConstArrayView& of_pooled, const RegionIndex& index,
                           std::span<const std::int32_t> winner, std::span<float> x_gradient) {
  check_pooled_regions(index, x_gradient.size(), of_pooled.size(), winner.size());
  if (active_device() == Device::cuda)
    return cuda::roi_max_pool_gradient(of_pooled, index, winner, x_gradient);
  const ImageShape& shape = index.images();
  const std::span<const float> y_gradient = of_pooled.floats();
  const std::int64_t image = shape.height * shape.width * shape.channels;
  const std::int64_t region = index.size() * index.size() * shape.channels;
  parallel_for(shape.batch, [&](std::int64_t n) noexcept {
    float* sums = x_gradient.data() + n * image;
    std::fill_n(sums, image, 0.0f);
    const auto first = index.first().subspan(static_cast<std::size_t>(n), 2);
    for (std::int64_t i = first[0] * region; i < first[1] * region; ++i) {
      const auto at = static_cast<std::size_t>(i);
      sums[winner[at] * shape.channels + i % shape.channels] += y_gradient[at];
    }
  });
}

}  // namespace halfscope
