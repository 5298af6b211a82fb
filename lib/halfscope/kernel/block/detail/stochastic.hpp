// Elements of blocks that are rounded stochastically at their block's scale.
#pragma once

#include <span>

#include <halfscope/core/random.hpp>
#include <halfscope/kernel/block/detail/tile.hpp>

namespace halfscope::detail {

/// Writes the values of a matrix whose elements are rounded stochastically to `out`, which may be the matrix,
/// split over the threads. Element i draws rounding_bits(stream, i).
void write_stochastic_values(const TensorInBlocks& tensor, const RandomStream& stream, std::span<float> out);

}  // namespace halfscope::detail
