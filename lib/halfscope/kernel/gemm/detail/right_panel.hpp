// Copies of neighbouring columns of a product's right factor; only for *_simd.cpp, which are compiled once
// per instruction set.
#pragma once

#include <halfscope/kernel/detail/quads.hpp>
#include <halfscope/kernel/detail/vector.hpp>
#include <halfscope/kernel/gemm/detail/gemm_simd.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

HALFSCOPE_HD std::size_t smaller(std::size_t x, std::size_t y) {
  return x < y ? x : y;
}

/// `columns` columns of b from element (k, n) on.
HALFSCOPE_HD RightMatrix part_of(const RightMatrix& b, std::size_t k, std::size_t n, std::size_t columns) {
  const auto row = static_cast<std::int64_t>(k), column = static_cast<std::int64_t>(n);
  return {b.data + row * b.row_stride + column * b.column_stride, static_cast<std::int64_t>(columns),
          b.row_stride, b.column_stride};
}

/// Four columns that each lie in one piece: to[k * width + i] = element (k, i).
template <std::size_t width>
void copy_four_columns(const RightMatrix& b, std::size_t terms, float* to) {
  const auto column = [&](std::int64_t i) { return b.data + i * b.column_stride; };
  std::size_t k = 0;
  for (; k + 4 <= terms; k += 4) {
    Quads x;
    for (std::size_t i = 0; i < 4; ++i)
      std::memcpy(&x.row[i], column(static_cast<std::int64_t>(i)) + k, sizeof x.row[i]);
    x = transposed(x);
    for (std::size_t i = 0; i < 4; ++i) std::memcpy(to + (k + i) * width, &x.row[i], sizeof x.row[i]);
  }
  for (; k < terms; ++k) {
    for (std::int64_t i = 0; i < 4; ++i) to[k * width + static_cast<std::size_t>(i)] = column(i)[k];
  }
}

/// to[k * width + n] = element (k, n) of `terms` rows of b, which has `width` columns or fewer; zeros up to
/// the width.
template <std::size_t width>
void copy_panel(const RightMatrix& b, std::size_t terms, float* to) {
  static_assert(width % lanes == 0);
  const auto columns = static_cast<std::size_t>(b.columns);
  if (b.column_stride == 1) {
    const float* from = b.data;
    for (std::size_t k = 0; k < terms; ++k, from += b.row_stride) {
      for (std::size_t n = 0; n < width; n += lanes)
        store(to + k * width + n,
              n < columns ? load_some(from + n, smaller(lanes, columns - n)) : FloatVec{});
    }
    return;
  }
  std::size_t n = 0;
  if (b.row_stride == 1) {
    for (; n + 4 <= columns; n += 4) copy_four_columns<width>(part_of(b, 0, n, 4), terms, to + n);
  }
  for (; n < width; ++n) {
    const float* from = b.data + static_cast<std::int64_t>(n) * b.column_stride;
    for (std::size_t k = 0; k < terms; ++k)
      to[k * width + n] = n < columns ? from[static_cast<std::int64_t>(k) * b.row_stride] : 0.0f;
  }
}

}  // namespace
}  // namespace halfscope
