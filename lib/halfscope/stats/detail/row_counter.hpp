// Counts the elements of a row whose scales are known, a segment at a time.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/kernel/block/detail/count.hpp>
#include <halfscope/stats/detail/block_counter.hpp>

namespace halfscope::detail {

/// How the elements of a row are rounded and counted.
struct RowCounter {
  Quantizer element;
  float tensor_scale = 1;
  ElementLimits limits{};
  ScaledExponents exponents = ScaledExponents::left_out;
  RandomStream stream{};

  /// Adds elements, signal and error of a row whose first element has the index `first` in its tensor.
  void add(std::span<const float> row, const RowScales& scales, std::int64_t first,
           BlockCounts& counts) const;

 private:
  /// Columns of a row: the first one's number, and its element's index in the tensor.
  struct Segment {
    std::span<const float> values;
    std::int64_t column, first;
  };
  void add_segment(const Segment& segment, const RowScales& row, BlockCounts& counts) const;
  void round_elements(std::span<const float> scaled, std::span<float> elements, std::int64_t first) const;
};

}  // namespace halfscope::detail
