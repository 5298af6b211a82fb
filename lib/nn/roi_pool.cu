// Max pooling over regions on the device, one thread per number that is written.
#include <halfscope/kernel/detail/launch.cuh>

#include "lib/nn/roi_pool.hpp"
#include "lib/nn/roi_pool_element.hpp"

namespace halfscope::cuda {
namespace {

struct RoiForward {
  ElementReader x;
  const Region* regions;
  ImageShape shape;
  std::int64_t size;
  ElementWriter y;
  std::int32_t* winner;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int64_t channel = i % shape.channels, part = i / shape.channels % (size * size);
    const Region region = regions[i / shape.channels / (size * size)];
    const PartRange rows = pixels_of_part(part / size, size, region.top, region.bottom),
                    columns = pixels_of_part(part % size, size, region.left, region.right);
    const std::int64_t image = region.image * shape.height * shape.width;
    std::int64_t at = rows.first * shape.width + columns.first;
    float largest = x[(image + at) * shape.channels + channel];
    for (std::int64_t r = rows.first; r < rows.last; ++r) {
      for (std::int64_t c = columns.first; c < columns.last; ++c) {
        const float here = x[(image + r * shape.width + c) * shape.channels + channel];
        if (!(here > largest)) continue;
        largest = here;
        at = r * shape.width + c;
      }
    }
    y.set(i, largest);
    winner[i] = static_cast<std::int32_t>(at);
  }
};

struct RoiBackward {
  ElementReader y_gradient;
  const Region* regions;
  const std::int32_t* first;
  const std::int32_t* winner;
  ImageShape shape;
  std::int64_t size;
  float* x_gradient;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int64_t channel = i % shape.channels, pixel = i / shape.channels;
    const std::int64_t in_image = pixel % (shape.height * shape.width);
    const std::int64_t image = pixel / (shape.height * shape.width);
    float sum = 0;
    for (std::int64_t n = first[image]; n < first[image + 1]; ++n) {
      const Region region = regions[n];
      const PartRange rows = parts_of_pixel(in_image / shape.width, size, region.top, region.bottom),
                      columns = parts_of_pixel(in_image % shape.width, size, region.left, region.right);
      for (std::int64_t r = rows.first; r < rows.last; ++r) {
        for (std::int64_t c = columns.first; c < columns.last; ++c) {
          const std::int64_t at = ((n * size + r) * size + c) * shape.channels + channel;
          if (winner[at] == in_image) sum += y_gradient[at];
        }
      }
    }
    x_gradient[i] = sum;
  }
};

}  // namespace

void roi_max_pool(const ConstArrayView& x, const RegionIndex& index, const ArrayView& y,
                  std::span<std::int32_t> winner) {
  if (y.size() == 0) return;
  for_each(static_cast<std::int64_t>(y.size()),
           RoiForward{on_device(x), on_device(index.regions()), index.images(), index.size(), on_device(y),
                      on_device(winner)},
           "roi_max_pool");
}

void roi_max_pool_gradient(const ConstArrayView& y_gradient, const RegionIndex& index,
                           std::span<const std::int32_t> winner, std::span<float> x_gradient) {
  if (x_gradient.empty()) return;
  for_each(static_cast<std::int64_t>(x_gradient.size()),
           RoiBackward{on_device(y_gradient), on_device(index.regions()), on_device(index.first()),
                       on_device(winner), index.images(), index.size(), on_device(x_gradient)},
           "roi_max_pool_gradient");
}

}  // namespace halfscope::cuda
