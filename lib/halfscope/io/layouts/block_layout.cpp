// The extents of blocks follow from the two shapes: usual sizes first, since the last block may be short.
#include <halfscope/io/layouts/detail/block_layout.hpp>

#include <algorithm>

namespace halfscope {
namespace {

/// Elements of a block along an axis of `extent` elements and `scales` scales.
std::optional<std::int64_t> block_extent(std::int64_t extent, std::int64_t scales) {
  if (scales == extent) return 1;
  if (scales == 1) return extent;
  if (scales <= 0) return std::nullopt;
  for (const std::int64_t block : {128, 64, 32, 16}) {
    if (extent / block + (extent % block != 0) == scales) return block;
  }
  if (extent % scales == 0) return extent / scales;
  return std::nullopt;
}

}  // namespace

bool blocks_fit(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& scales,
                std::int64_t rows, std::int64_t columns) {
  const std::size_t rank = shape.size();
  if (rank < 2 || scales.size() != rank || rows <= 0 || columns <= 0) return false;
  const auto blocks = [](std::int64_t extent, std::int64_t block) {
    return extent / block + (extent % block != 0 ? 1 : 0);
  };
  return std::equal(scales.begin(), scales.end() - 2, shape.begin()) &&
         scales[rank - 2] == blocks(shape[rank - 2], rows) &&
         scales[rank - 1] == blocks(shape[rank - 1], columns);
}

std::optional<BlockLayout> fit_blocks(const std::vector<std::int64_t>& shape,
                                      std::vector<std::int64_t> scales) {
  const bool is_one = std::ranges::all_of(scales, [](std::int64_t extent) { return extent == 1; });
  BlockLayout layout;
  if (!shape.empty()) layout.columns = shape.back();
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) layout.rows *= shape[i];
  if (is_one) {
    layout.row_extent = layout.block_rows = std::max<std::int64_t>(layout.rows, 1);
    layout.block_columns = std::max<std::int64_t>(layout.columns, 1);
    return layout;
  }
  if (scales.size() + 1 == shape.size()) {  // a scale for each row
    if (scales.empty() || scales.back() != shape[shape.size() - 2]) return std::nullopt;
    scales.push_back(1);
  }
  if (scales.size() != shape.size()) return std::nullopt;
  const std::size_t rank = shape.size();
  for (std::size_t i = 0; i + 2 < rank; ++i)
    if (scales[i] != shape[i]) return std::nullopt;
  const auto columns = block_extent(shape[rank - 1], scales[rank - 1]);
  const auto rows = rank < 2 ? 1 : block_extent(shape[rank - 2], scales[rank - 2]);
  if (!columns || !rows) return std::nullopt;
  layout.row_extent = rank < 2 ? 1 : std::max<std::int64_t>(shape[rank - 2], 1);
  layout.scale_rows = rank < 2 ? 1 : scales[rank - 2];
  layout.scale_columns = scales[rank - 1];
  layout.block_rows = std::max<std::int64_t>(*rows, 1);
  layout.block_columns = std::max<std::int64_t>(*columns, 1);
  return layout;
}

}  // namespace halfscope
