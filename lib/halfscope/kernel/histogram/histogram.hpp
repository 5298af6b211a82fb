// Counts the floats of an array by binade, in one pass.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <halfscope/device/device.hpp>
#include <halfscope/format/formats.hpp>

namespace halfscope {

/// Where in a binade rounding to a format changes what it does: the least FP32 fraction fields, up to 2^23
/// for none, that round beyond the largest number in its binade, and to the smallest normal number in the
/// binade below that.
struct BinadeEdges {
  std::uint32_t rounds_to_overflow = 0;
  std::uint32_t rounds_to_normal = 0;

  friend constexpr bool operator==(const BinadeEdges&, const BinadeEdges&) = default;
};

/// The edges of `format` under nearest_even. Both are midpoints of two neighbours with `mantissa_bits`
/// fraction bits: of the last subnormal number (odd) and the first normal one, and of the largest number and
/// what would come next. The tie goes to the even one. Without mantissa bits zero (even) is below the first
/// normal number.
[[nodiscard]] constexpr BinadeEdges binade_edges(const FloatFormat& format) {
  const std::uint32_t half_step = 1u << (23 - format.mantissa_bits);  // in halves of FP32's last bit
  const std::uint32_t to_normal = (1u << 24) - half_step * 2 + (format.mantissa_bits == 0 ? 1 : 0);
  const std::uint32_t largest = format.max_finite_code() & ((1u << format.mantissa_bits) - 1u);
  const std::uint32_t to_overflow =
      (2 * largest + 1) * half_step + (format.max_finite_code() % 2 == 0 ? 1 : 0);
  const auto least_field = [](std::uint32_t halves) { return (halves + 1) / 2; };
  return {least_field(to_overflow), least_field(to_normal)};
}

/// Numbers in one binade [2^e, 2^(e+1)), either sign. The last three count the ones next to the edges at
/// which rounding to a format changes what a power-of-two scale does to them.
struct BinadeCounts {
  std::int64_t all = 0;
  std::int64_t at_power_of_two = 0;  ///< exactly 2^e: half the smallest number ties to zero
  std::int64_t rounds_to_overflow =
      0;  ///< fraction field >= BinadeEdges::rounds_to_overflow: in the top binade it overflows
  std::int64_t rounds_to_normal =
      0;  ///< fraction field >= BinadeEdges::rounds_to_normal: below the normal numbers it rounds up to one

  friend constexpr bool operator==(const BinadeCounts&, const BinadeCounts&) = default;
};

/// Exponents of the finite nonzero floats: FP32 subnormals are filed under their true binade.
inline constexpr int lowest_binade = -149;
inline constexpr int highest_binade = 127;

/// Counts of a pass over floats. The sum of `binades[].all`, zeros, infinities and nans is the number of
/// floats.
struct HistogramCounts {
  std::array<BinadeCounts, highest_binade - lowest_binade + 1> binades{};  ///< [e - lowest_binade]
  std::int64_t zeros = 0;                                                  ///< zeros of either sign
  std::int64_t negative_zeros = 0;
  std::int64_t infinities = 0;
  std::int64_t nans = 0;
  float max_abs = 0;  ///< largest finite magnitude

  friend constexpr bool operator==(const HistogramCounts&, const HistogramCounts&) = default;
};

/// `histogram` of an array on the device, which it calls where that is the active one.
namespace cuda {
void histogram(std::span<const float> values, HistogramCounts& counts, const BinadeEdges& edges);
}

/// Adds `values` to `counts`, on one thread; all that go into the same counts with the same edges.
void histogram(std::span<const float> values, HistogramCounts& counts,
               const BinadeEdges& edges = binade_edges(fp16));

}  // namespace halfscope
