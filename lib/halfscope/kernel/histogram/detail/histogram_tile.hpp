// The bins of a tile of floats; only for *_simd.cpp, which are compiled once for each instruction set.
#pragma once

#include <halfscope/kernel/histogram/detail/histogram_bins.hpp>

// Unnamed, so that no two instruction sets share what is compiled for one of them.
namespace halfscope {
namespace {

/// Notes the largest magnitude of some numbers; only where it is infinite or NaN are they looked at again.
inline void note_largest(const float* values, std::size_t count, std::int32_t largest, Extremes& seen) {
  constexpr auto infinity = static_cast<std::int32_t>(infinity_bits);
  if (largest >= infinity) {
    std::int32_t finite = 0;
#pragma omp simd reduction(max : finite)
    for (std::size_t i = 0; i < count; ++i) {
      const auto magnitude = static_cast<std::int32_t>(magnitude_bits(values[i]));
      const std::int32_t number = magnitude < infinity ? magnitude : 0;
      finite = finite > number ? finite : number;
    }
    largest = finite;
  }
  seen.max_finite = seen.max_finite > largest ? seen.max_finite : largest;
}

/// Notes the extremes of a tile; only tiles with zeros, infinities or NaNs need a second look for them.
inline void note_extremes(const float* values, std::size_t count, std::int32_t smallest, std::int32_t largest,
                          Extremes& seen) {
  seen.first_field = seen.first_field < smallest >> 23 ? seen.first_field : smallest >> 23;
  seen.last_field = seen.last_field > largest >> 23 ? seen.last_field : largest >> 23;
  if (smallest == 0) {
    std::uint32_t negative_zeros = 0;
#pragma omp simd reduction(+ : negative_zeros)
    for (std::size_t i = 0; i < count; ++i) negative_zeros += to_bits(values[i]) == sign_bit ? 1u : 0u;
    seen.negative_zeros += negative_zeros;
  }
  note_largest(values, count, largest, seen);
}

/// The bins of `count` numbers.
inline void find_bins(const float* values, std::size_t count, const OrderedEdges& edges, std::uint16_t* out,
                      Extremes& seen) {
  std::int32_t smallest = 0x7FFFFFFF, largest = 0;
#pragma omp simd reduction(max : largest) reduction(min : smallest)
  for (std::size_t i = 0; i < count; ++i) {
    const auto magnitude = static_cast<std::int32_t>(to_bits(values[i]) & ~sign_bit);
    out[i] =
        static_cast<std::uint16_t>(((magnitude >> 23) << 2) + fraction_class(magnitude & 0x7FFFFF, edges));
    smallest = smallest < magnitude ? smallest : magnitude;
    largest = largest > magnitude ? largest : magnitude;
  }
  note_extremes(values, count, smallest, largest, seen);
}

}  // namespace
}  // namespace halfscope
