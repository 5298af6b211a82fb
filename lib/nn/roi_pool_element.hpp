// Which pixels a part of a region has and which parts a pixel is in, for the loops on the CPU and on the
// device.
#pragma once

#include "lib/nn/roi_pool.hpp"

namespace halfscope {

/// From `first` to the last before `last`.
struct PartRange {
  std::int64_t first, last;
};

/// The pixels of part `part` of `size` parts of the pixels from `from` to the last before `to`.
[[nodiscard]] HALFSCOPE_HD PartRange pixels_of_part(std::int64_t part, std::int64_t size, std::int64_t from,
                                                    std::int64_t to) {
  const std::int64_t count = to - from;
  return {from + part * count / size, from + ((part + 1) * count + size - 1) / size};
}

/// The parts that have `pixel`; none where it is outside.
[[nodiscard]] HALFSCOPE_HD PartRange parts_of_pixel(std::int64_t pixel, std::int64_t size, std::int64_t from,
                                                    std::int64_t to) {
  if (pixel < from || pixel >= to) return {0, 0};
  const std::int64_t count = to - from, at = pixel - from;
  return {at * size / count, ((at + 1) * size + count - 1) / count};
}

}  // namespace halfscope
