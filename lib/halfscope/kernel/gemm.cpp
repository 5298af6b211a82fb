// The FP32 matrix product, compiled once per instruction set: a register tile of independent sums, k
// ascending.
#include <halfscope/kernel/gemm.hpp>

#include <halfscope/kernel/vector.hpp>

namespace halfscope {
namespace {

constexpr std::size_t tile_vectors = 2;
constexpr std::size_t tile_rows = lanes == 16 ? 12 : 4;
/// Terms per pass: this many rows of one tile's columns of b stay in the first-level cache.
constexpr std::size_t depth_block = 256;

/// Columns of b and of c that one column of tiles covers; `stride` is the distance between their rows.
struct Panel {
  const float* b;
  std::size_t b_stride;
  float* c;
  std::size_t c_stride;
};

/// One tile of c: `rows` by `vectors * lanes`, terms [k0, k1). Between blocks of k the partial sums wait in
/// c, unrounded, so that blocking does not change a bit.
template <std::size_t rows, std::size_t vectors>
void tile(const GatherMatrix& a, const Panel& panel, std::size_t m, std::size_t k0, std::size_t k1) {
  const float* a_row[rows];
  Floats sum[rows][vectors];
  for (std::size_t i = 0; i < rows; ++i) {
    a_row[i] = a.data + a.row[m + i];
    for (std::size_t j = 0; j < vectors; ++j) {
      sum[i][j] = k0 == 0 ? Floats{} : load(panel.c + (m + i) * panel.c_stride + j * lanes);
    }
  }
  const float* b_row = panel.b + k0 * panel.b_stride;
  for (std::size_t k = k0; k < k1; ++k, b_row += panel.b_stride) {
    Floats b_k[vectors];
    for (std::size_t j = 0; j < vectors; ++j) b_k[j] = load(b_row + j * lanes);
    const std::int32_t column = a.column[k];
#pragma GCC unroll 12
    for (std::size_t i = 0; i < rows; ++i) {
      const Floats a_ik = all_lanes(a_row[i][column]);
      for (std::size_t j = 0; j < vectors; ++j) sum[i][j] += a_ik * b_k[j];
    }
  }
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < vectors; ++j)
      store(panel.c + (m + i) * panel.c_stride + j * lanes, sum[i][j]);
  }
}

template <std::size_t vectors>
void column_of_tiles(const GatherMatrix& a, const Panel& panel, std::size_t first_row, std::size_t last_row) {
  const std::size_t depth = a.column.size();
  for (std::size_t k0 = 0; k0 == 0 || k0 < depth; k0 += depth_block) {
    const std::size_t k1 = k0 + depth_block < depth ? k0 + depth_block : depth;
    std::size_t m = first_row;
    for (; m + tile_rows <= last_row; m += tile_rows) tile<tile_rows, vectors>(a, panel, m, k0, k1);
    for (; m + 4 <= last_row; m += 4) tile<4, vectors>(a, panel, m, k0, k1);
    for (; m < last_row; ++m) tile<1, vectors>(a, panel, m, k0, k1);
  }
}

/// The last columns, too few for a vector: computed in a copy that is padded with zeros.
void narrow_column(const GatherMatrix& a, const DenseMatrix& b, const Panel& panel, std::size_t first_row,
                   std::size_t last_row, std::size_t width) {
  const auto depth = static_cast<std::size_t>(b.rows);
  float* padded = new float[(depth + (last_row - first_row)) * lanes]{};
  for (std::size_t k = 0; k < depth; ++k) {
    for (std::size_t n = 0; n < width; ++n) padded[k * lanes + n] = panel.b[k * panel.b_stride + n];
  }
  float* c = padded + depth * lanes;
  const GatherMatrix rows{a.data, a.row.subspan(first_row, last_row - first_row), a.column};
  column_of_tiles<1>(rows, {padded, lanes, c, lanes}, 0, last_row - first_row);
  for (std::size_t m = first_row; m < last_row; ++m) {
    for (std::size_t n = 0; n < width; ++n) panel.c[m * panel.c_stride + n] = c[(m - first_row) * lanes + n];
  }
  delete[] padded;
}

}  // namespace

template <Isa isa>
void gemm_rows_isa(const GatherMatrix& a, const DenseMatrix& b, float* c, std::int64_t first_row,
                   std::int64_t last_row) {
  const auto first = static_cast<std::size_t>(first_row);
  const auto last = static_cast<std::size_t>(last_row);
  const auto columns = static_cast<std::size_t>(b.columns);
  std::size_t n = 0;
  const auto panel = [&] { return Panel{b.data + n, columns, c + n, columns}; };
  for (; n + tile_vectors * lanes <= columns; n += tile_vectors * lanes) {
    column_of_tiles<tile_vectors>(a, panel(), first, last);
  }
  for (; n + lanes <= columns; n += lanes) column_of_tiles<1>(a, panel(), first, last);
  if (n < columns && first < last) narrow_column(a, b, panel(), first, last, columns - n);
}
template void gemm_rows_isa<target_isa>(const GatherMatrix&, const DenseMatrix&, float*, std::int64_t,
                                        std::int64_t);

}  // namespace halfscope
