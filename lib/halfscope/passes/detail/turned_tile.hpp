// Tiles of a tensor whose blocks run along another axis than the last.
#pragma once

#include <cstddef>
#include <span>

#include <halfscope/io/tensor_file.hpp>
#include <halfscope/kernel/block/detail/axis_last.hpp>
#include <halfscope/passes/detail/matrix_tiles.hpp>

namespace halfscope {

/// Reads a tile of tensor `index`, which lies in its order, (outer, length, inner), as (outer, inner,
/// length): some lines at a time, so that a cache holds them. `out` has room for the tile.
void read_turned(const TensorFile& file, std::size_t index, const detail::AroundAxis& around,
                 const MatrixTile& tile, std::span<float> out);

}  // namespace halfscope
