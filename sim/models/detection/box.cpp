// Overlaps, encoding and decoding of boxes.
#include "sim/models/detection/box.hpp"

#include <algorithm>

#include <halfscope/arithmetic/elementary.hpp>

namespace halfscope {
namespace {

constexpr float centre_unit = 0.1f, side_unit = 0.2f;
constexpr float largest_logarithm = 6.907755f;  // log(1000)

float area(const Box& box) {
  return std::max(0.0f, box.bottom - box.top) * std::max(0.0f, box.right - box.left);
}

/// One direction of a box.
struct Extent {
  float low, high;
  [[nodiscard]] float side() const { return high - low; }
  [[nodiscard]] float centre() const { return 0.5f * (low + high); }
};

Extent decode(float centre, float side, const Extent& anchor) {
  const float middle = anchor.centre() + centre * centre_unit * anchor.side();
  const float half = 0.5f * anchor.side() * exp(std::min(side * side_unit, largest_logarithm));
  return {middle - half, middle + half};
}

}  // namespace

float intersection_over_union(const Box& a, const Box& b) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0 && width > 0)) return 0;
  const float common = height * width;
  return common / (area(a) + area(b) - common);
}

BoxOffsets encode_box(const Box& box, const Box& anchor) {
  const Extent rows{box.top, box.bottom}, columns{box.left, box.right};
  const Extent anchor_rows{anchor.top, anchor.bottom}, anchor_columns{anchor.left, anchor.right};
  return {(rows.centre() - anchor_rows.centre()) / anchor_rows.side() / centre_unit,
          (columns.centre() - anchor_columns.centre()) / anchor_columns.side() / centre_unit,
          log(rows.side() / anchor_rows.side()) / side_unit,
          log(columns.side() / anchor_columns.side()) / side_unit};
}

Box decode_box(const BoxOffsets& offsets, const Box& anchor) {
  const Extent rows = decode(offsets[0], offsets[2], {anchor.top, anchor.bottom});
  const Extent columns = decode(offsets[1], offsets[3], {anchor.left, anchor.right});
  return {.top = rows.low, .left = columns.low, .bottom = rows.high, .right = columns.high};
}

}  // namespace halfscope
