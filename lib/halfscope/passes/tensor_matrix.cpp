// Matrices tile by tile, each tile for all formats at once.
#include <halfscope/passes/detail/tensor_matrix.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include <halfscope/core/parallel.hpp>
#include <halfscope/io/detail/tensor_parts.hpp>
#include <halfscope/passes/detail/column_errors.hpp>
#include <halfscope/passes/detail/row_errors.hpp>
#include <halfscope/passes/detail/turned_tile.hpp>
#include <halfscope/passes/file_formats.hpp>

namespace halfscope {
namespace {

CountedPart part_of(std::span<const float> values, const MatrixTile& tile, const MatrixShape& matrix) {
  return {values, tile.shape, tile.row * matrix.columns + tile.column, matrix.columns};
}

/// Counts of a tile by format, and sums of its rows.
struct TileCounts {
  std::vector<BlockCounts> counts{};
  FormatCounter::SumsByFormat sums{};
};

/// Fewer and larger pages, where the system has them: a tensor is written across all of them.
void ask_for_large_pages(std::span<float> values) {
  constexpr std::uintptr_t page = 1 << 21;
  const auto begin = (reinterpret_cast<std::uintptr_t>(values.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(values.data() + values.size()) / page * page;
  if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

std::vector<FormatCounts> finished(const FormatCounter& counter, std::vector<BlockCounts> found,
                                   RowErrorList& rows, const TensorMatrix& matrix,
                                   std::span<const TensorFormat> formats) {
  std::vector<FormatCounts> counts = counter.finish(std::move(found));
  rows.finish(counts);
  find_shared_scales(matrix, formats, counts);
  find_column_errors(matrix, tile_unit(formats), counter, counts);
  return counts;
}

}  // namespace

TensorMatrix::TensorMatrix(const TensorFile& file, std::size_t index, std::int64_t axis)
    : file_(&file), index_(index) {
  const StoredTensor& tensor = file.tensors()[index];
  shape_ = matrix_along(tensor.shape, axis, tensor.name);
  const detail::AroundAxis around = *detail::around_axis(tensor.shape, axis);
  if (!is_held(tensor)) {
    if (around.inner > 1) turned_ = around;
    return;
  }
  const auto elements = static_cast<std::size_t>(tensor.elements);
  held_ = std::make_unique_for_overwrite<float[]>(elements);
  const std::span<float> held(held_.get(), elements);
  ask_for_large_pages(held);
  in_memory_ = held;
  if (around.inner == 1) {
    file.read_row_major(index, held);
    return;
  }
  std::vector<float> values(elements);
  file.read_row_major(index, values);
  detail::bring_axis_last(std::span<const float>(values), around, held);
}

std::span<const float> TensorMatrix::tile(const MatrixTile& tile, std::vector<float>& buffer) const {
  const std::int64_t elements = tile.shape.rows * tile.shape.columns;
  if (!in_memory_.empty() && tile.shape.columns == shape_.columns) return in_memory(tile.row, 0, elements);
  buffer.resize(static_cast<std::size_t>(elements));
  if (in_memory_.empty()) {
    turned_ ? read_turned(*file_, index_, *turned_, tile, buffer)
            : read_tile(*file_, index_, shape_.columns, tile, buffer);
    return buffer;
  }
  auto out = buffer.begin();
  for_each_row(tile, [&](std::span<const float> row) { out = std::ranges::copy(row, out).out; });
  return buffer;
}

TensorMaximum TensorMatrix::maximum(const MatrixTile& tile) const {
  TensorMaximum found;
  const auto add = [&](std::span<const float> piece) { found.add(piece); };
  in_memory_.empty() ? read_pieces(*file_, index_, shape_.columns, tile, add) : for_each_row(tile, add);
  return found;
}

std::vector<MatrixTile> TensorMatrix::tiles(const MatrixShape& unit) const {
  constexpr std::int64_t turned_line = 1024;  // elements of a line: its tile stays in a cache
  if (!turned_) return matrix_tiles(shape_, unit);
  const std::int64_t lines = (turned_line + unit.rows - 1) / unit.rows * unit.rows;
  return matrix_tiles(shape_, {std::min(lines, std::max(unit.rows, shape_.rows)), unit.columns});
}

std::vector<MatrixTile> TensorMatrix::whole_rows() const {
  constexpr std::int64_t elements = std::int64_t{1} << 24, turned_line = 4096;
  if (!turned_ || shape_.columns > elements) return matrix_tiles(shape_, tile_unit({}));
  const std::int64_t columns = std::max<std::int64_t>(1, shape_.columns);
  return matrix_tiles(shape_, {std::clamp<std::int64_t>(elements / columns, 1, turned_line), columns});
}

bool is_held(const StoredTensor& tensor) {
  const bool in_order = tensor.axes.empty() && tensor.access == Access::random;
  return tensor.elements > 0 && !in_order;
}

std::vector<FormatCounts> count_on_one_thread(const TensorMatrix& matrix,
                                              std::span<const TensorFormat> formats,
                                              ScaledExponents exponents) {
  const std::vector<MatrixTile> tiles = matrix.tiles(tile_unit(formats));
  std::vector<float> buffer;
  std::span<const float> values;
  TensorMaximum maximum;
  if (tiles.size() > 1) {
    for (const MatrixTile& tile : tiles) maximum.merge(matrix.maximum(tile));
  } else if (!tiles.empty()) {
    values = matrix.tile(tiles.front(), buffer);
    maximum.add(values);
  }
  const FormatCounter counter(formats, maximum, exponents);
  std::vector<BlockCounts> found;
  FormatCounter::SumsByFormat sums;
  RowErrorList rows(matrix.shape(), formats.size());
  for (const MatrixTile& tile : tiles) {
    if (tiles.size() > 1) values = matrix.tile(tile, buffer);
    counter.add(part_of(values, tile, matrix.shape()), found, sums);
    rows.add(tile, sums);
  }
  return finished(counter, std::move(found), rows, matrix, formats);
}

std::vector<FormatCounts> count_on_all_threads(const TensorMatrix& matrix,
                                               std::span<const TensorFormat> formats,
                                               ScaledExponents exponents) {
  const std::vector<MatrixTile> tiles = matrix.tiles(tile_unit(formats));
  const std::vector<MatrixTile> rows = matrix_tiles(matrix.shape(), tile_unit({}));
  TensorMaximum maximum;
  work_through(
      std::span<const MatrixTile>(rows), [&](const MatrixTile& part) { return matrix.maximum(part); },
      [&](const MatrixTile&, const TensorMaximum& part) { maximum.merge(part); });
  const FormatCounter counter(formats, maximum, exponents);
  std::vector<BlockCounts> all(formats.size());
  RowErrorList errors(matrix.shape(), formats.size());
  work_through(
      std::span<const MatrixTile>(tiles),
      [&](const MatrixTile& tile) {
        thread_local std::vector<float> buffer;
        TileCounts found;
        counter.add(part_of(matrix.tile(tile, buffer), tile, matrix.shape()), found.counts, found.sums);
        return found;
      },
      [&](const MatrixTile& tile, const TileCounts& found) {
        for (std::size_t i = 0; i < all.size(); ++i) all[i].merge(found.counts[i]);
        errors.add(tile, found.sums);
      });
  return finished(counter, std::move(all), errors, matrix, formats);
}

}  // namespace halfscope
