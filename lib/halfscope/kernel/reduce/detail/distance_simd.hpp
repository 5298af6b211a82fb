// The loops of a distance's sums, compiled once per instruction set.
#pragma once

#include <cstddef>

#include <halfscope/kernel/detail/dispatch.hpp>
#include <halfscope/kernel/reduce/distance.hpp>

namespace halfscope {

inline constexpr std::size_t distance_tile = std::size_t{1}
                                             << 16;  // elements, so that a count fits into 32 bits

/// The sums of at most one tile.
template <Isa isa>
DistanceSums tile_distance_isa(const float* found, const float* expected, std::size_t count);
template <>
DistanceSums tile_distance_isa<Isa::baseline>(const float*, const float*, std::size_t);
template <>
DistanceSums tile_distance_isa<Isa::avx2>(const float*, const float*, std::size_t);
template <>
DistanceSums tile_distance_isa<Isa::avx512>(const float*, const float*, std::size_t);

template <Isa isa>
DistanceSums tile_distance_isa(const double* found, const double* expected, std::size_t count);
template <>
DistanceSums tile_distance_isa<Isa::baseline>(const double*, const double*, std::size_t);
template <>
DistanceSums tile_distance_isa<Isa::avx2>(const double*, const double*, std::size_t);
template <>
DistanceSums tile_distance_isa<Isa::avx512>(const double*, const double*, std::size_t);

}  // namespace halfscope
