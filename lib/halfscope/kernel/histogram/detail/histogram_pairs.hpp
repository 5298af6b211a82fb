// Counts the exponents of two floats with one increment; only for *_simd.cpp, which are compiled once for
// each instruction set.
#pragma once

#include <cstring>

#include <halfscope/kernel/histogram/detail/histogram_tile.hpp>

// Unnamed, so that no two instruction sets share what is compiled for one of them.
namespace halfscope {
namespace {

/// The binades whose numbers are counted in pairs, where their class is `plain`; what is neither such a
/// number nor a zero is marked, and counted by itself.
struct Window {
  static constexpr std::uint32_t binades = 63, zero = binades;  ///< a zero's place is after the binades'

  /// `last_field` is the exponent field of the highest binade, where there are as many below it.
  Window(std::uint32_t last_field, const OrderedEdges& edges)
      : first_field(last_field < binades ? 1 : last_field - binades + 1),
        base((first_field << 23) + 1),
        edge((static_cast<std::uint32_t>(edges.first) - 1) << 9) {}

  /// The place that a number is counted in; a number is in the binade of the next smaller one, which matters
  /// only to those that are marked.
  HALFSCOPE_HD std::uint32_t place(std::uint32_t magnitude) const {
    const std::uint32_t binade = (magnitude - base) >> 23;  // far beyond the last for what is below
    return binade < zero ? binade : zero;
  }
  /// 1 or 0. The fraction of the next smaller number tells powers of two, too: theirs is past any edge.
  HALFSCOPE_HD std::uint32_t marks(std::uint32_t magnitude) const {
    const bool outside = magnitude - base >= binades << 23, past_edge = (magnitude - base) << 9 >= edge;
    return (magnitude != 0) & (outside | past_edge) ? 1 : 0;  // no branches: this runs in vectors
  }

  std::uint32_t first_field;
  std::uint32_t base;  ///< the magnitude after the window's first
  std::uint32_t edge;  ///< the first edge, less 1, as the upper bits
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

/// Pairs of numbers by the places of both.
class PairTables {
 public:
  static constexpr std::size_t tile = 1024;                ///< numbers
  static constexpr std::size_t most_numbers = 127 * tile;  ///< so that 16 bits hold the sum of all pairs
  static constexpr std::uint32_t most_marks = 32;          ///< in a tile; more take longer than they save

  PairTables(const Window& window, const OrderedEdges& edges) : window_(window), edges_(edges) {}

  /// Counts a tile and returns how many numbers were marked.
  std::uint32_t add_tile(const float* values, BlockCounts& block) {
    std::uint16_t pairs[half];
    find_pairs(values, pairs, block.extremes);
    std::uint32_t marks = 0;
    for (std::size_t i = 0; i < half; i += tables) {
      std::uint64_t four;  // one load, and one look for marks, for all of them
      std::memcpy(&four, pairs + i, sizeof four);
      for (std::uint64_t left = four & any_mark; left != 0; left &= left - 1) {
        const std::size_t at = i + static_cast<std::size_t>(__builtin_ctzll(left)) / 16;
        marks += count_marked(values[2 * at], block) + count_marked(values[2 * at + 1], block);
      }
      four &= ~any_mark;
      for (std::size_t j = 0; j < tables; ++j) ++counts_[j][(four >> (16 * j)) & 0xFFFF];
    }
    return marks;
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

  void find_pairs(const float* values, std::uint16_t* out, Extremes& seen) const {
    const Window window = window_;  // a copy that `out` cannot alias
    std::int32_t largest = 0;
    std::uint32_t negative_zeros = 0;
#pragma omp simd reduction(max : largest) reduction(+ : negative_zeros)
    for (std::size_t i = 0; i < half; ++i) {
      const std::uint32_t first = to_bits(values[2 * i]), second = to_bits(values[2 * i + 1]);
      const std::uint32_t a = first & ~sign_bit, b = second & ~sign_bit;
      const std::uint32_t marks = (window.marks(a) | window.marks(b)) != 0 ? mark : 0;
      out[i] = static_cast<std::uint16_t>(window.place(a) | window.place(b) << place_bits | marks);
      const auto x = static_cast<std::int32_t>(a), y = static_cast<std::int32_t>(b);
      const std::int32_t larger = x > y ? x : y;
      largest = largest > larger ? largest : larger;
      negative_zeros += (first == sign_bit ? 1u : 0u) + (second == sign_bit ? 1u : 0u);
    }
    seen.negative_zeros += negative_zeros;
    note_largest(values, tile, largest, seen);
  }

  /// Counts a number that is marked in its bin, and takes away what its pair counts it as.
  std::uint32_t count_marked(float value, BlockCounts& block) const {
    const std::uint32_t magnitude = magnitude_bits(value);
    if (window_.marks(magnitude) == 0) return 0;
    const std::uint32_t field = magnitude >> 23;
    ++block.sums[bin_of(magnitude, edges_)];
    --block.sums[bin_of_place(window_.place(magnitude))];
    note_field(static_cast<std::int32_t>(field), block.extremes);
    return 1;
  }

  Window window_;
  OrderedEdges edges_;
  /// Offset by a line of the cache against each other: the same pair in two tables is not taken for one.
  alignas(64) std::uint16_t counts_[tables][side * side + 32] = {};
};

}  // namespace
}  // namespace halfscope
