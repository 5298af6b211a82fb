// Counts the floats of an array by binade, in one pass.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <halfscope/kernel/isa.hpp>

namespace halfscope {

/// Numbers in one binade [2^e, 2^(e+1)), either sign. The last three count the ones next to the edges at
/// which FP16 rounding changes what a power-of-two scale does to them.
struct BinadeCounts {
  std::int64_t all = 0;
  std::int64_t pow2 = 0;  ///< exactly 2^e: at 2^-25 it ties to zero
  std::int64_t top = 0;   ///< fraction field >= 0x7FF000: in the top binade it rounds to infinity
  std::int64_t ts = 0;    ///< fraction field >= 0x7FE000: below the smallest normal number it rounds up to it

  friend constexpr bool operator==(const BinadeCounts&, const BinadeCounts&) = default;
};

/// Exponents of the finite nonzero floats: FP32 subnormals are filed under their true binade.
inline constexpr int lowest_binade = -149;
inline constexpr int highest_binade = 127;

/// What a pass over floats found. The sum of `binades[].all`, zeros, infinities and nans is the number of
/// floats.
struct HistogramCounts {
  std::array<BinadeCounts, highest_binade - lowest_binade + 1> binades{};  ///< [e - lowest_binade]
  std::int64_t zeros = 0;                                                  ///< of either sign
  std::int64_t negative_zeros = 0;
  std::int64_t infinities = 0;
  std::int64_t nans = 0;
  float max_abs = 0;  ///< of the finite ones

  friend constexpr bool operator==(const HistogramCounts&, const HistogramCounts&) = default;
};

/// `histogram` compiled for one instruction set.
template <Isa isa>
void histogram_isa(const float* values, std::size_t count, HistogramCounts& counts);
template <>
void histogram_isa<Isa::baseline>(const float*, std::size_t, HistogramCounts&);
template <>
void histogram_isa<Isa::avx2>(const float*, std::size_t, HistogramCounts&);
template <>
void histogram_isa<Isa::avx512>(const float*, std::size_t, HistogramCounts&);

/// Adds `values` to `counts`, on one thread.
inline void histogram(std::span<const float> values, HistogramCounts& counts) {
  dispatch_isa([&]<Isa isa>() { histogram_isa<isa>(values.data(), values.size(), counts); });
}

}  // namespace halfscope
