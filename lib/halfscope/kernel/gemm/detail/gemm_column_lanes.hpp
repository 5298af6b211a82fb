// The matrix product in columns of register tiles, whose panels of b are copied together where that pays;
// only for *_simd.cpp, which are compiled once per instruction set.
#pragma once

#include <halfscope/kernel/detail/scratch.hpp>
#include <halfscope/kernel/detail/vector.hpp>
#include <halfscope/kernel/gemm/detail/gemm_simd.hpp>
#include <halfscope/kernel/gemm/detail/gemm_tile_lanes.hpp>
#include <halfscope/kernel/gemm/detail/operand_summary.hpp>
#include <halfscope/kernel/gemm/detail/right_panel.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

constexpr std::size_t tile_vectors = 2;

/// `terms` rows of a panel's b, scaled: copied together where several tiles read them, since rows of b that
/// are a power of two apart would push each other out of the cache.
template <std::size_t width>
void copy_scaled(const Panel& panel, std::size_t terms, float scale, float* copy) {
  for (std::size_t k = 0; k < terms; ++k) {
    for (std::size_t n = 0; n < width; n += lanes) {
      store(copy + k * width + n, load(panel.b + k * panel.b_stride + n) * scale);
    }
  }
}

/// Whether the operands let the fast path start: those of a, and `terms` rows of a panel's b.
template <std::size_t width, typename Step, typename FastPath>
bool operands_allow(const Order<Step, FastPath>& order, const Panel& panel, std::size_t terms) {
  if constexpr (is_limited<FastPath>) {
    OperandSummary<FastPath> summary;
    for (std::size_t k = 0; k < terms; ++k) summary.see(panel.b + k * panel.b_stride, width);
    return static_cast<float>(terms) * order.largest_a * summary.largest() <= FastPath::most_added;
  }
  return true;
}

template <std::size_t vectors, typename Step, typename FastPath>
void column_of_tiles(const GatherMatrix& a, const Panel& panel, const RowRange& range,
                     const Order<Step, FastPath>& order) {
  constexpr std::size_t rows = tile_rows<Step, FastPath>;
  const std::size_t depth = a.column.size();
  const auto last = static_cast<std::size_t>(range.last);
  constexpr std::size_t width = vectors * lanes;
  alignas(vector_bytes) float copy[depth_block * width];
  const bool copies = panel.b_stride != width && order.terms_per_pass <= depth_block &&
                      range.last - range.first > 2 * std::int64_t{rows};
  for (std::size_t k0 = 0; k0 == 0 || k0 < depth; k0 += order.terms_per_pass) {
    const std::size_t k1 = k0 + order.terms_per_pass < depth ? k0 + order.terms_per_pass : depth;
    DepthBlock pass{
        k0, k1, {panel.b + k0 * panel.b_stride, panel.b_stride, panel.c, panel.c_stride}, nullptr};
    if constexpr (has_fast_path<FastPath>) {
      if (operands_allow<width>(order, pass.panel, k1 - k0)) {
        copy_scaled<width>(pass.panel, k1 - k0, order.fast_path.scale, copy);
        pass.scaled = copy;
      }
    }
    if (pass.scaled == nullptr && copies) {
      copy_scaled<width>(pass.panel, k1 - k0, 1, copy);
      pass.panel.b = copy;
      pass.panel.b_stride = width;
    }
    auto m = static_cast<std::size_t>(range.first);
    for (; m + rows <= last; m += rows) tile<rows, vectors>(a, m, pass, order);
    for (; m + 4 <= last; m += 4) tile<4, vectors>(a, m, pass, order);
    for (; m < last; ++m) tile<1, vectors>(a, m, pass, order);
  }
}

/// Where the first of some columns of c begins, and the distance between its rows.
struct ColumnsOfC {
  float* c;
  std::size_t stride;
};

/// Columns of c by as many of b, which are copied side by side unless they lie so.
template <std::size_t vectors, typename Step, typename FastPath>
void whole_column(const GatherMatrix& a, const RightMatrix& b, const ColumnsOfC& c, const RowRange& range,
                  const Order<Step, FastPath>& order) {
  constexpr std::size_t width = vectors * lanes;
  if (b.column_stride == 1) {
    const auto stride = static_cast<std::size_t>(b.row_stride);
    return column_of_tiles<vectors>(a, {b.data, stride, c.c, c.stride}, range, order);
  }
  const std::size_t depth = a.column.size();
  const Scratch<float> copy(depth * width);
  copy_panel<width>(b, depth, copy.data());
  column_of_tiles<vectors>(a, {copy.data(), width, c.c, c.stride}, range, order);
}

/// The last columns, too few for a vector: computed in a copy that is padded with the same columns again.
template <typename Step, typename FastPath>
void narrow_column(const GatherMatrix& a, const RightMatrix& b, const ColumnsOfC& to, const RowRange& range,
                   const Order<Step, FastPath>& order) {
  const std::size_t depth = a.column.size();
  const auto first_row = static_cast<std::size_t>(range.first);
  const auto rows = static_cast<std::size_t>(range.last) - first_row;
  const Scratch<float> scratch((depth + rows) * lanes);
  float* const padded = scratch.data();
  std::memset(padded, 0, (depth + rows) * lanes * sizeof *padded);
  const float* from = b.data;
  for (std::size_t k = 0; k < depth; ++k, from += b.row_stride) {
    for (std::size_t n = 0; n < lanes; ++n)
      padded[k * lanes + n] = from[static_cast<std::int64_t>(n) % b.columns * b.column_stride];
  }
  float* c = padded + depth * lanes;
  const GatherMatrix some_rows{a.data, a.row.subspan(first_row, rows), a.column, a.layout, a.stride};
  column_of_tiles<1>(some_rows, {padded, lanes, c, lanes}, {0, range.last - range.first}, order);
  for (std::size_t m = 0; m < rows; ++m)
    std::memcpy(to.c + (first_row + m) * to.stride, c + m * lanes,
                static_cast<std::size_t>(b.columns) * sizeof *c);
}

/// A range of c = a b, each sum added up in `order`.
template <typename Step, typename FastPath>
void multiply(const GatherMatrix& a, const RightMatrix& b, float* c, const OutputRange& range,
              const Order<Step, FastPath>& order) {
  const auto columns = static_cast<std::size_t>(b.columns),
             last = static_cast<std::size_t>(range.last_column);
  auto n = static_cast<std::size_t>(range.first_column);
  const auto whole = [&]<std::size_t vectors>() {
    whole_column<vectors>(a, part_of(b, 0, n, vectors * lanes), {c + n, columns}, range.rows, order);
    n += vectors * lanes;
  };
  while (n + tile_vectors * lanes <= last) whole.template operator()<tile_vectors>();
  while (n + lanes <= last) whole.template operator()<1>();
  if (n < last && range.rows.first < range.rows.last)
    narrow_column(a, part_of(b, 0, n, last - n), {c + n, columns}, range.rows, order);
}

}  // namespace
}  // namespace halfscope
