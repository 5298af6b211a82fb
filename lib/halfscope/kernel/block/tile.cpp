// Tiles of a matrix in blocks, with the scales of their blocks.
#include <halfscope/kernel/block/detail/tile.hpp>

namespace halfscope::detail {
namespace {

OrdinaryRow ordinary_row(std::span<const float> values, const ScaledTile& tile, std::int64_t row) {
  return {values.subspan(tile.start_of(row), static_cast<std::size_t>(tile.range.columns)), tile.scales,
          static_cast<std::size_t>(tile.block_columns)};
}

/// The writers of a row of ordinary blocks, and of a segment of any others.
template <typename T>
struct Writers {
  void (*ordinary)(const OrdinaryRow&, const SegmentRounding&, T*);
  void (*segment)(std::span<const float>, const SegmentScales&, const SegmentRounding&, T*);
};

template <typename T>
void write_tile(std::span<const float> values, const ScaledTile& tile, const SegmentRounding& rounding,
                T* out, const Writers<T>& write) {
  if (tile.is_ordinary && rounding.takes_ordinary && tile.block_columns % ordinary_step == 0) {
    for (std::int64_t row = 0; row < tile.range.rows; ++row)
      write.ordinary(ordinary_row(values, tile, row), rounding, out + tile.start_of(row));
    return;
  }
  tile.for_each_segment([&](std::size_t at, std::size_t count, const SegmentScales& scales) {
    write.segment(values.subspan(at, count), scales, rounding, out + at);
  });
}

}  // namespace

TensorInBlocks::TensorInBlocks(std::span<const float> matrix, const MatrixShape& matrix_shape,
                               const BlockFormat& block_format)
    : values(matrix),
      shape(matrix_shape),
      format(block_format),
      amax(tensor_maximum(matrix, block_format)),
      factors(tensor_factors(amax, block_format)) {}

bool rounds_in_segments(const BlockFormat& format) {
  return format.element.rounding == Rounding::nearest_even && format.element.format.exponent_bits < 8;
}

TileGrid::TileGrid(const TensorInBlocks& tensor)
    : blocks(block_grid(tensor.shape, tensor.format.block)),
      blocks_per_tile(std::max<std::int64_t>(
          1, static_cast<std::int64_t>(segment_columns) / tensor.format.block.columns)),
      tiles_per_row((blocks.columns + blocks_per_tile - 1) / blocks_per_tile),
      count(blocks.rows * tiles_per_row) {}

ScaledTile TileScaler::scale(std::int64_t tile) {
  const BlockFormat& format = tensor_.format;
  const std::int64_t column = tile % grid_.tiles_per_row * grid_.blocks_per_tile;
  const std::int64_t first_block = tile / grid_.tiles_per_row * grid_.blocks.columns + column;
  const auto blocks =
      static_cast<std::size_t>(std::min(grid_.blocks_per_tile, grid_.blocks.columns - column));
  BlockRange range = block_range(tensor_.shape, format.block, first_block);
  range.columns = std::min(static_cast<std::int64_t>(blocks) * format.block.columns,
                           tensor_.shape.columns - range.first_column);
  maxima_.resize(blocks);
  scales_.resize(blocks);
  ScaledTile scaled{first_block, range, format.block.columns, scales_};
  find_maxima({tensor_.values.data() + scaled.start_of(0), range.rows, range.stride, range.columns,
               format.block.columns},
              maxima_);
  format.rule->choice == ScaleChoice::single ? scaler_.scale(maxima_, scales_) : choose_scales(first_block);
  scaled.is_ordinary = scaler_.are_ordinary(maxima_, scales_);
  return scaled;
}

void TileScaler::choose_scales(std::int64_t first_block) {
  for (std::size_t i = 0; i < scales_.size(); ++i) {
    const BlockRange block =
        block_range(tensor_.shape, tensor_.format.block, first_block + static_cast<std::int64_t>(i));
    scales_[i] = choose_scale(tensor_.values, block, tensor_.format, tensor_.factors, tensor_.amax);
  }
}

void write_tile_values(std::span<const float> values, const ScaledTile& tile, const SegmentRounding& rounding,
                       float* out) {
  write_tile(values, tile, rounding, out, {write_ordinary_values, write_values});
}

void write_tile_codes(std::span<const float> values, const ScaledTile& tile, const SegmentRounding& rounding,
                      std::uint8_t* codes) {
  write_tile(values, tile, rounding, codes, {write_ordinary_codes, write_codes});
}

}  // namespace halfscope::detail
