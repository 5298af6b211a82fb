// Counts the exponents of two floats with one increment; only for *_simd.cpp, which are compiled once for
// each instruction set.
#pragma once

#include <cstring>

#include <halfscope/kernel/histogram/detail/histogram_tile.hpp>

// Unnamed, so that no two instruction sets share what is compiled for one of them.
namespace halfscope {
namespace {

/// The binades whose numbers are counted in pairs, where their class is `plain`. A number of another class in
/// them is marked, and counted by itself; so is a number outside of them that is not zero.
struct Window {
  static constexpr std::uint32_t binades = 63, zero = binades;  ///< a zero's place is after the binades'

  /// `last_field` is the exponent field of the highest binade, where there are as many below it.
  Window(std::uint32_t last_field, const OrderedEdges& edges)
      : first_field(last_field < binades ? 1 : last_field - binades + 1),
        base((first_field << 23) + 1),
        edge(edges.first - 1) {}

  /// The place that a number is counted in; a number is in the binade of the next smaller one, which matters
  /// only to those that are marked. One outside of the window is in the place of zeros.
  HALFSCOPE_HD std::uint32_t place(std::uint32_t magnitude) const {
    const std::uint32_t binade = (magnitude - base) >> 23;  // far beyond the last for what is below
    return binade < zero ? binade : zero;
  }
  /// The fraction of the next smaller number, which for powers of two is past any edge; negative of zeros and
  /// of what is below the window.
  HALFSCOPE_HD std::int32_t fraction(std::uint32_t magnitude) const {
    return static_cast<std::int32_t>((magnitude - base) & 0x807FFFFFu);
  }
  /// 1 or 0, of numbers in the window and of larger ones.
  HALFSCOPE_HD std::uint32_t marks(std::uint32_t magnitude) const {
    return fraction(magnitude) >= edge ? 1 : 0;
  }
  /// 1 or 0, without branches, since this runs in vectors.
  HALFSCOPE_HD std::uint32_t is_outside(std::uint32_t magnitude) const {
    const bool outside = (magnitude != 0) & (magnitude - base >= binades << 23);
    return outside ? 1 : 0;
  }
  /// Whether all numbers between these two, which may be zeros only if the smallest is one, are in it.
  [[nodiscard]] bool holds(std::int32_t smallest, std::int32_t largest) const {
    return smallest >= static_cast<std::int32_t>(base) &&
           static_cast<std::uint32_t>(largest) - base < binades << 23;
  }

  std::uint32_t first_field;
  std::uint32_t base;  ///< the magnitude after the window's first
  std::int32_t edge;   ///< the first edge, less 1
};

/// Sums of the bins of a block, and the extremes beside them.
struct BlockCounts {
  alignas(64) std::int64_t sums[bins] = {};
  Extremes extremes;
};

inline void note_field(std::int32_t field, Extremes& seen) {
  seen.first_field = seen.first_field < field ? seen.first_field : field;
  seen.last_field = seen.last_field > field ? seen.last_field : field;
}

inline std::size_t bin_of(std::uint32_t magnitude, const OrderedEdges& edges) {
  const auto fraction = static_cast<std::int32_t>(magnitude & 0x7FFFFFu);
  return classes * static_cast<std::size_t>(magnitude >> 23) +
         static_cast<std::size_t>(fraction_class(fraction, edges));
}

/// Pairs of numbers, half a tile apart, by the places of both.
class PairTables {
 public:
  static constexpr std::size_t tile = 1024;                ///< numbers
  static constexpr std::size_t most_numbers = 127 * tile;  ///< so that 16 bits hold the sum of all pairs
  static constexpr std::uint32_t most_marks = 32;          ///< in a tile; more take longer than they save

  PairTables(const Window& window, const OrderedEdges& edges) : window_(window), edges_(edges) {}

  /// Counts a tile and returns how many numbers were counted by themselves.
  std::uint32_t add_tile(const float* values, BlockCounts& block) {
    std::uint16_t pairs[half];
    std::uint32_t alone = 0;
    if (!find_pairs(values, pairs, block.extremes)) alone += count_outside(values, block);
    for (std::size_t i = 0; i < half; i += tables) {
      std::uint64_t four;  // one load, and one look for marks, for all of them
      std::memcpy(&four, pairs + i, sizeof four);
      for (std::uint64_t left = four & any_mark; left != 0; left &= left - 1) {
        const std::size_t at = i + static_cast<std::size_t>(__builtin_ctzll(left)) / 16;
        alone += count_marked(values[at], block) + count_marked(values[at + half], block);
      }
      four &= ~any_mark;
      for (std::size_t j = 0; j < tables; ++j) ++counts_[j][(four >> (16 * j)) & 0xFFFF];
    }
    return alone;
  }

  /// Moves the pairs' numbers to the block.
  void settle(BlockCounts& block) const {
    std::uint16_t by_first[side] = {}, by_second[side] = {};
    for (std::size_t second = 0; second < side; ++second) {
      std::uint16_t all = 0;
#pragma omp simd reduction(+ : all)
      for (std::size_t first = 0; first < side; ++first) {
        const std::size_t pair = side * second + first;
        const auto sum = static_cast<std::uint16_t>(counts_[0][pair] + counts_[1][pair] + counts_[2][pair] +
                                                    counts_[3][pair]);
        by_first[first] = static_cast<std::uint16_t>(by_first[first] + sum);
        all = static_cast<std::uint16_t>(all + sum);
      }
      by_second[second] = all;
    }
    for (std::uint32_t place = 0; place < side; ++place) {
      const std::int32_t numbers = by_first[place] + by_second[place];
      if (numbers == 0) continue;
      const std::size_t bin = bin_of_place(place);
      block.sums[bin] += numbers;
      note_field(static_cast<std::int32_t>(bin / classes), block.extremes);
    }
  }

 private:
  static constexpr std::size_t tables = 4, place_bits = 6, side = 1 << place_bits, half = tile / 2;
  static_assert(side == Window::zero + 1 && most_numbers / 2 < 65536);
  static constexpr std::uint16_t mark = 0x8000;
  static constexpr std::uint64_t any_mark = 0x8000'8000'8000'8000;

  [[nodiscard]] std::size_t bin_of_place(std::uint32_t place) const {
    return place == Window::zero ? std::size_t{pow2} : classes * (window_.first_field + place) + plain;
  }

  /// Returns whether all numbers are in the window, and none is zero.
  bool find_pairs(const float* values, std::uint16_t* out, Extremes& seen) const {
    const Window window = window_;  // a copy that `out` cannot alias
    std::int32_t smallest = 0x7FFFFFFF, largest = 0;
#pragma omp simd reduction(max : largest) reduction(min : smallest)
    for (std::size_t i = 0; i < half; ++i) {
      const std::uint32_t a = to_bits(values[i]) & ~sign_bit, b = to_bits(values[i + half]) & ~sign_bit;
      const std::int32_t fraction_a = window.fraction(a), fraction_b = window.fraction(b);
      const std::uint32_t marks =
          (fraction_a > fraction_b ? fraction_a : fraction_b) >= window.edge ? mark : 0;
      out[i] = static_cast<std::uint16_t>(window.place(a) | window.place(b) << place_bits | marks);
      const auto x = static_cast<std::int32_t>(a), y = static_cast<std::int32_t>(b);
      const std::int32_t larger = x > y ? x : y, smaller = x > y ? y : x;
      largest = largest > larger ? largest : larger;
      smallest = smallest < smaller ? smallest : smaller;
    }
    note_largest(values, tile, largest, seen);
    return window.holds(smallest, largest);
  }

  /// Counts what is outside of the window by itself; negative zeros are noted.
  std::uint32_t count_outside(const float* values, BlockCounts& block) const {
    const Window window = window_;
    std::uint32_t negative_zeros = 0, outside = 0;
#pragma omp simd reduction(+ : negative_zeros, outside)
    for (std::size_t i = 0; i < tile; ++i) {
      const std::uint32_t bits = to_bits(values[i]);
      negative_zeros += bits == sign_bit ? 1u : 0u;
      outside += window.is_outside(bits & ~sign_bit);
    }
    block.extremes.negative_zeros += negative_zeros;
    for (std::size_t i = 0; outside != 0 && i < tile; ++i) {
      const std::uint32_t magnitude = magnitude_bits(values[i]);
      if (window.is_outside(magnitude) != 0) count_alone(magnitude, block);
    }
    return outside;
  }

  /// Counts a number of the window that is marked.
  std::uint32_t count_marked(float value, BlockCounts& block) const {
    const std::uint32_t magnitude = magnitude_bits(value);
    if (window_.marks(magnitude) == 0 || window_.is_outside(magnitude) != 0) return 0;
    count_alone(magnitude, block);
    return 1;
  }

  /// Counts a number in its bin, and takes away what its pair counts it as.
  void count_alone(std::uint32_t magnitude, BlockCounts& block) const {
    ++block.sums[bin_of(magnitude, edges_)];
    --block.sums[bin_of_place(window_.place(magnitude))];
    note_field(static_cast<std::int32_t>(magnitude >> 23), block.extremes);
  }

  Window window_;
  OrderedEdges edges_;
  /// Offset by a line of the cache against each other: the same pair in two tables is not taken for one.
  alignas(64) std::uint16_t counts_[tables][side * side + 32] = {};
};

}  // namespace
}  // namespace halfscope
