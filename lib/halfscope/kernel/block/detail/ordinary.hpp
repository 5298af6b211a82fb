// Counts of ordinary rows of blocks: one pass that rounds, counts and adds up squares.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <halfscope/kernel/block/detail/binade_planes.hpp>
#include <halfscope/kernel/block/detail/count.hpp>
#include <halfscope/kernel/block/detail/segment.hpp>

namespace halfscope {

/// Elements of a row by what became of them, and squares added up as CosineSums, then over the lanes.
struct OrdinaryCounts {
  std::int64_t zeros = 0;        ///< are zero
  std::int64_t zero_values = 0;  ///< get the value zero
  std::int64_t subnormal = 0;    ///< become subnormal numbers of the element format, not of value zero
  std::int64_t clipped = 0;      ///< are at the scale beyond OrdinaryOutput::largest
  double signal = 0, error = 0;  ///< squares of elements, and of what values differ from them by
  bool is_below_planes = false;  ///< whether an element at its scale is below the planes' binades, not zero
};
/// Zeros among numbers, and their squares added up as OrdinaryCounts::signal; the same under all formats.
struct NumberCounts {
  std::int64_t zeros = 0;
  double signal = 0;
};
[[nodiscard]] NumberCounts count_numbers(std::span<const float> values);

/// Whatever else the pass over a row gives, and what is known before.
struct OrdinaryOutput {
  float* values = nullptr;                ///< if given, gets the rounded values; must not alias the row
  const float* largest = nullptr;         ///< unless it is null: the largest magnitude that does not clip
  const NumberCounts* numbers = nullptr;  ///< unless it is null: the row's, which are not counted again
  BinadePlanes* planes = nullptr;  ///< unless it is null: gets the elements at their scale, and is not full
};
/// Counts a row of blocks none of which is special, with a rounding that takes ordinary numbers; elements
/// below `normal` are subnormal.
[[nodiscard]] OrdinaryCounts count_ordinary(const OrdinaryRow& row, const SegmentRounding& rounding,
                                            float normal, const OrdinaryOutput& out);

/// Elements from a magnitude on at their block's scale.
[[nodiscard]] std::int64_t count_from(const OrdinaryRow& row, ScaleStep step, float magnitude);

/// Counts by code, in several tables so that no increment waits for the one before.
struct CodeTables {
  static constexpr std::size_t tables = 4, codes = 256;
  std::array<std::array<std::uint32_t, codes>, tables> counts{};

  [[nodiscard]] std::int64_t of(std::size_t code) const {
    std::int64_t sum = 0;
    for (const auto& table : counts) sum += table[code];
    return sum;
  }
};

}  // namespace halfscope
