// Tiles of the device's matrix products: the elements of a block and a thread, and loading of a block's
// operands.
#pragma once

#include <halfscope/kernel/detail/blocks.cuh>
#include <halfscope/kernel/gemm/gemm.hpp>

namespace halfscope::cuda {

/// The operands of a product, and where it goes.
struct Matrices {
  ElementReader a;
  const std::int32_t* a_row;
  const std::int32_t* a_column;
  ElementReader b;
  float* c;
  std::int64_t rows, depth, columns;

  [[nodiscard]] HALFSCOPE_HD float a_at(std::int64_t m, std::int64_t k) const {
    return a[a_row[m] + a_column[k]];
  }
  [[nodiscard]] HALFSCOPE_HD float b_at(std::int64_t k, std::int64_t n) const { return b[k * columns + n]; }
};

/// A block has `side` x `side` threads, a thread `per` x `per` elements of c that are `side` apart, and a
/// pass brings in `depth` terms.
template <int per_thread>
struct Tile {
  static constexpr int side = 16, threads = side * side, per = per_thread, width = per * side, depth = 32;

  /// Numbers or what is made of them: a's by term and row, b's by term and column. The padding lets threads
  /// that differ in the term write to different banks.
  template <typename T>
  struct Operands {
    T a[depth][std::size_t{width} + 1];
    T b[depth][std::size_t{width} + 1];
  };

  [[nodiscard]] HALFSCOPE_HD static std::int64_t blocks(std::int64_t rows, std::int64_t columns) {
    return (rows + width - 1) / width * ((columns + width - 1) / width);
  }
  /// The first row and column of a block.
  [[nodiscard]] HALFSCOPE_HD static std::int64_t first_row(const Matrices& m, std::int64_t block) {
    return block / ((m.columns + width - 1) / width) * width;
  }
  [[nodiscard]] HALFSCOPE_HD static std::int64_t first_column(const Matrices& m, std::int64_t block) {
    return block % ((m.columns + width - 1) / width) * width;
  }

  /// Each operand of pass `pass` as `convert` makes it; what lies beyond a matrix is a zero.
  template <typename T, typename Convert>
  HALFSCOPE_HD static void fill(const Matrices& matrices, const BlockThread& here, std::int64_t pass,
                                Operands<T>& to, const Convert& convert) {
    const std::int64_t row = first_row(matrices, here.block), column = first_column(matrices, here.block);
    // Neighbouring threads read neighbouring numbers, whichever way a is laid out.
    const bool rows_adjoin = matrices.rows > 1 && matrices.a_row[1] - matrices.a_row[0] == 1;
    for (int i = here.thread; i < width * depth; i += threads) {
      const int r = rows_adjoin ? i % width : i / depth, t = rows_adjoin ? i / width : i % depth;
      const std::int64_t m = row + r, k = pass * depth + t;
      to.a[t][r] = convert(m < matrices.rows && k < matrices.depth ? matrices.a_at(m, k) : 0.0f);
    }
    for (int i = here.thread; i < width * depth; i += threads) {
      const std::int64_t k = pass * depth + i / width, n = column + i % width;
      to.b[i / width][i % width] =
          convert(k < matrices.depth && n < matrices.columns ? matrices.b_at(k, n) : 0.0f);
    }
  }

  /// Calls body(i, j, m, n) for the thread's elements (m, n) of c, of which it is element (i, j).
  template <typename Body>
  HALFSCOPE_HD static void for_elements(const Matrices& matrices, const BlockThread& here, const Body& body) {
    for (int i = 0; i < per; ++i) {
      for (int j = 0; j < per; ++j) {
        const std::int64_t m = first_row(matrices, here.block) + here.thread / side + side * i;
        const std::int64_t n = first_column(matrices, here.block) + here.thread % side + side * j;
        if (m < matrices.rows && n < matrices.columns) body(i, j, m, n);
      }
    }
  }
};

/// Calls body(tile) with a tile of `per` x `per` elements a thread where that leaves enough blocks to fill a
/// device, else with one of one each.
template <int per, typename Body>
void with_tile(const Matrices& matrices, const Body& body) {
  constexpr std::int64_t large = 1 << 18;
  if (matrices.rows * matrices.columns >= large) return body(Tile<per>{});
  body(Tile<1>{});
}

}  // namespace halfscope::cuda
