// The loops over blocks: codes of a matrix, numbers of codes, and both in one.
#include <halfscope/kernel/block/quantise.hpp>

#include <fmt/format.h>

#include <halfscope/core/detail/equal_sizes.hpp>
#include <halfscope/core/parallel.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/kernel/block/detail/block_element.hpp>
#include <halfscope/kernel/block/detail/matrix_size.hpp>
#include <halfscope/kernel/block/detail/stochastic.hpp>
#include <halfscope/kernel/block/detail/tile.hpp>

namespace halfscope {
namespace {

void check_scales(const char* function, const BlockCodes& codes, const BlockShape& block) {
  const MatrixShape grid = block_grid(codes.shape, block);
  detail::check_equal_sizes(function, static_cast<std::size_t>(grid.rows * grid.columns),
                            codes.scales.size());
}

/// Calls body(block, range) for every block, split over the threads.
template <typename Body>
void visit_blocks(const MatrixShape& shape, const BlockShape& block, const Body& body) {
  const MatrixShape grid = block_grid(shape, block);
  constexpr std::int64_t elements_per_range = 4096;
  const std::int64_t grain = std::max<std::int64_t>(1, elements_per_range / block.size());
  parallel_for_ranges(grid.rows * grid.columns, grain, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t i = first; i < first + count; ++i) body(i, detail::block_range(shape, block, i));
  });
}

/// Roundings other than to the nearest, element by element.
void quantise_one_by_one(const detail::TensorInBlocks& tensor, const RandomStream& stream,
                         BlockCodes& codes) {
  const BlockFormat& format = tensor.format;
  const detail::ElementRounding element(format, stream);
  visit_blocks(tensor.shape, format.block, [&](std::int64_t block, const detail::BlockRange& range) {
    const BlockScale scale = detail::choose_scale(tensor.values, range, format, tensor.factors, tensor.amax);
    codes.scales[static_cast<std::size_t>(block)] = scale.code;
    range.for_each([&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      codes.elements[at] =
          static_cast<std::uint8_t>(encode(element(tensor.values[at], scale, i), format.element.format));
    });
  });
}

}  // namespace

void detail::check_matrix_size(const char* function, std::size_t size, const MatrixShape& shape) {
  const auto rows = static_cast<std::size_t>(shape.rows), columns = static_cast<std::size_t>(shape.columns);
  const bool whole = columns == 0 ? size == 0 : size % columns == 0 && size / columns == rows;
  if (shape.rows >= 0 && shape.columns >= 0 && whole) return;
  throw InvalidArgument(
      fmt::format("{}: {} values are no matrix of {} x {}", function, size, shape.rows, shape.columns));
}

BlockCodes quantise_blocks(std::span<const float> values, const MatrixShape& shape, const BlockFormat& format,
                           const RandomStream& stream) {
  detail::check_matrix_size("quantise_blocks", values.size(), shape);
  const MatrixShape grid = block_grid(shape, format.block);
  const detail::TensorInBlocks tensor(values, shape, format);
  BlockCodes codes{shape, std::vector<std::uint8_t>(values.size()),
                   std::vector<std::uint32_t>(static_cast<std::size_t>(grid.rows * grid.columns)),
                   tensor.factors};
  if (!detail::rounds_in_segments(format)) {
    quantise_one_by_one(tensor, stream, codes);
    return codes;
  }
  const SegmentRounding rounding(format, codes.tensor);
  detail::visit_tiles(tensor, [&](const detail::ScaledTile& tile) {
    for (std::size_t i = 0; i < tile.scales.size(); ++i)
      codes.scales[static_cast<std::size_t>(tile.first_block) + i] = tile.scales[i].code;
    detail::write_tile_codes(values, tile, rounding, codes.elements.data());
  });
  return codes;
}

std::vector<std::uint32_t> scales_of_rows(const BlockCodes& codes, const BlockShape& block, int columns) {
  if (columns < 1 || block.columns % columns != 0) {
    throw InvalidArgument(fmt::format("scales_of_rows: blocks of {} x {} are not made of runs of {} elements",
                                      block.rows, block.columns, columns));
  }
  check_scales("scales_of_rows: scales", codes, block);
  const std::int64_t across = block_grid(codes.shape, block).columns;
  const std::int64_t runs = block_grid(codes.shape, {1, columns}).columns, each = block.columns / columns;
  std::vector<std::uint32_t> scales;
  scales.reserve(static_cast<std::size_t>(codes.shape.rows * runs));
  for (std::int64_t row = 0; row < codes.shape.rows; ++row) {
    for (std::int64_t run = 0; run < runs; ++run)
      scales.push_back(codes.scales[static_cast<std::size_t>(row / block.rows * across + run / each)]);
  }
  return scales;
}

void decode_blocks(const BlockCodes& codes, const BlockFormat& format, std::span<float> out) {
  detail::check_matrix_size("decode_blocks", out.size(), codes.shape);
  detail::check_matrix_size("decode_blocks", codes.elements.size(), codes.shape);
  check_scales("decode_blocks: scales", codes, format.block);
  visit_blocks(codes.shape, format.block, [&](std::int64_t block, const detail::BlockRange& range) {
    const float scale = decode_scale(codes.scales[static_cast<std::size_t>(block)], format.scale());
    range.for_each([&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      out[at] = detail::element_value(decode(codes.elements[at], format.element.format), scale, codes.tensor,
                                      format);
    });
  });
}

void round_blocks(std::span<const float> in, std::span<float> out, const MatrixShape& shape,
                  const BlockFormat& format, const RandomStream& stream) {
  detail::check_matrix_size("round_blocks", out.size(), shape);
  detail::check_matrix_size("round_blocks", in.size(), shape);
  if (format.element.rounding == Rounding::stochastic)
    return detail::write_stochastic_values({in, shape, format}, stream, out);
  if (!detail::rounds_in_segments(format))
    return decode_blocks(quantise_blocks(in, shape, format, stream), format, out);
  const detail::TensorInBlocks tensor(in, shape, format);
  const SegmentRounding rounding(format, tensor.factors);
  detail::visit_tiles(tensor, [&](const detail::ScaledTile& tile) {
    detail::write_tile_values(in, tile, rounding, out.data());
  });
}

}  // namespace halfscope
