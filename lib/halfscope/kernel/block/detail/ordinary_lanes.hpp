// Elements of ordinary blocks, a vector at a time; only for *_simd.cpp, which are compiled once per
// instruction set.
#pragma once

#include <halfscope/kernel/block/detail/block_vector.hpp>
#include <halfscope/kernel/block/detail/segment.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

/// Finite numbers at a scale, and what they are rounded to, neither with a NaN.
template <ScaleStep step, ZeroSign zero>
struct OrdinaryLanes {
  explicit OrdinaryLanes(const RoundingGrid& grid)
      : least(all_lanes(grid.min_normal_field << 23)),
        largest(all_lanes(grid.max_finite)),
        dropped(all_lanes(grid.dropped_bits << 23)),
        place(as_floats(all_lanes((grid.dropped_bits + 127) << 23))) {}

  HALFSCOPE_HD FloatVec scaled(FloatVec x, FloatVec factor) const {
    const FloatVec exact = step == ScaleStep::multiply ? x * factor : x / factor;
    return zero == ZeroSign::dropped ? exact + 0.0f : exact;  // -0 + 0 is +0
  }
  /// The element nearest to a magnitude. Saturating first keeps the sum from overflowing, and changes no
  /// result.
  HALFSCOPE_HD Ints rounded(Ints magnitude) const {
    const Ints saturated = smaller(magnitude, largest);
    const Ints binade = larger(saturated & all_lanes(infinity_bits), least);
#if defined(__FMA__)
    const FloatVec unit = as_floats(binade), x = as_floats(saturated);
    return as_ints(fused_less(unit, place, fused(unit, place, x)));  // c - a b
#else
    const FloatVec far = as_floats(binade + dropped);  // a sum with it drops the bits behind the place
    return as_ints((as_floats(saturated) + far) - far);
#endif
  }
  HALFSCOPE_HD FloatVec element(FloatVec scaled_number) const {
    const Ints bits = as_ints(scaled_number);
    return as_floats(rounded(bits & all_lanes(~sign_bit)) | (bits & all_lanes(sign_bit)));
  }
  HALFSCOPE_HD FloatVec operator()(FloatVec x, FloatVec factor) const {
    return element(scaled(x, factor));
  }

  Ints least, largest, dropped;
  FloatVec place;
};

/// Calls body(lanes) with the function that makes elements of values and factors.
template <typename Body>
HALFSCOPE_HD void with_ordinary_lanes(const SegmentRounding& rounding, const Body& body) {
  constexpr auto multiply = ScaleStep::multiply, divide = ScaleStep::divide;
  constexpr auto kept = ZeroSign::kept, dropped = ZeroSign::dropped;
  const bool keeps = rounding.zero == kept;
  if (rounding.step == multiply) {
    if (keeps) return body(OrdinaryLanes<multiply, kept>(rounding.grid));
    return body(OrdinaryLanes<multiply, dropped>(rounding.grid));
  }
  if (keeps) return body(OrdinaryLanes<divide, kept>(rounding.grid));
  body(OrdinaryLanes<divide, dropped>(rounding.grid));
}

/// Calls step(values, column, count, scale) for every 16 columns of a row; the last ones, if fewer, are
/// copied and followed by zeros.
template <typename Step>
HALFSCOPE_HD void for_each_ordinary_step(const OrdinaryRow& row, const Step& step) {
  constexpr std::size_t width = ordinary_step;
  const float* const values = row.values.data();
  const BlockScale* scale = row.scales.data();
  const std::size_t whole = row.values.size() / width * width;
  std::size_t column = 0;
  for (; column < whole; ++scale) {
    const std::size_t end = column + row.columns < whole ? column + row.columns : whole;
    for (; column < end; column += width) step(values + column, column, width, *scale);
  }
  const std::size_t rest = row.values.size() - whole;
  if (rest == 0) return;
  alignas(64) float last[width] = {};
  std::memcpy(last, values + whole, rest * sizeof(float));
  step(last, whole, rest, row.scales.data()[whole / row.columns]);
}

}  // namespace
}  // namespace halfscope
