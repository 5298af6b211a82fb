// Counts of numbers by binade in planes of bits, which vectors add to without tables.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include <halfscope/format/bits.hpp>
#include <halfscope/format/float_format.hpp>

namespace halfscope {

/// Counts of the numbers of 64 binades in a row. A number is a bit of a word, chosen by its exponent; the
/// words of a lane are added up bit by bit, as carry-save adders do: plane k holds bit k of every sum.
struct BinadePlanes {
  static constexpr std::size_t lanes = 16, binades_per_word = 32, words = 2;
  static constexpr std::size_t binades = words * binades_per_word;
  static constexpr std::size_t group = 8;    ///< words of a lane that are added at a time
  static constexpr std::size_t levels = 15;  ///< planes
  static constexpr std::size_t group_levels = 3, carry_level = 2 * group_levels;
  static constexpr std::uint32_t most_groups = (1u << (levels - group_levels)) - 1;
  /// A bit for each lane and binade.
  using Plane = std::array<std::array<std::uint32_t, lanes>, words>;

  /// The window's highest binade is the one above the format's largest number.
  explicit BinadePlanes(const FloatFormat& format) : first_field(first_field_of(format)) {}

  [[nodiscard]] static std::uint32_t first_field_of(const FloatFormat& format) {
    return static_cast<std::uint32_t>(
        std::max(1, format.max_exponent() + 2 + 127 - static_cast<int>(binades)));
  }
  /// Numbers from here on are above all binades; infinity at most.
  [[nodiscard]] static float end_of(const FloatFormat& format) {
    const std::uint32_t field = first_field_of(format) + static_cast<std::uint32_t>(binades);
    return from_bits(std::min(field << 23, infinity_bits));
  }
  [[nodiscard]] bool holds(std::uint32_t magnitude) const {
    return (magnitude >> 23) - first_field < binades;
  }
  [[nodiscard]] bool is_full(std::size_t numbers) const {
    return groups + numbers / (lanes * group) + 1 > most_groups;
  }
  /// Adds the count of each binade, the lowest first, and begins anew.
  void settle(std::span<std::int64_t, binades> counts);

  std::uint32_t first_field;  ///< exponent field of the lowest binade
  std::uint32_t groups = 0;   ///< groups added
  alignas(64) std::array<Plane, levels> sums{};
  /// Carries of the last groups % group groups, of the weight of sums[group_levels].
  alignas(64) std::array<Plane, group> carried{};
  /// A plane whose weight is that of sums[carry_level + k], where bit k of groups / group is set.
  alignas(64) std::array<Plane, levels - carry_level> waiting{};
};

}  // namespace halfscope
