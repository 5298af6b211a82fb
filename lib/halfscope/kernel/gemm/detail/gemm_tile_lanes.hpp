// A register tile of independent sums with rounded adds by a given step, k ascending; only for *_simd.cpp,
// which are compiled once per instruction set.
#pragma once

#include <type_traits>

#include <halfscope/kernel/cast/detail/round_lanes.hpp>
#include <halfscope/kernel/detail/vector.hpp>
#include <halfscope/kernel/gemm/detail/fast_lanes.hpp>
#include <halfscope/kernel/gemm/detail/gemm_simd.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

/// Product and sum rounded one after the other.
template <typename Round>
struct MulThenAdd {
  Round to;
  HALFSCOPE_HD FloatVec add_product(FloatVec c, FloatVec a, FloatVec b) const { return to(c + to(a * b)); }
};

template <typename Step>
constexpr bool rounds_to_any = requires(Step step) {
  step.to.grid;
};

/// Where sums are added up in one way only.
struct NoFastPath {};
template <typename FastPath>
constexpr bool has_fast_path = !std::is_same_v<FastPath, NoFastPath>;
/// Whether the fast path may only start where all sums are bounded.
template <typename FastPath>
constexpr bool is_limited = requires {
  FastPath::most_added;
};

/// As many rows as leave registers for the rounding between the adds, of which any format's needs most.
template <typename Step, typename FastPath>
constexpr std::size_t tile_rows = lanes < 16                                        ? 4
                                  : rounds_to_any<Step> && !has_fast_path<FastPath> ? 4
                                  : std::is_same_v<Step, MulThenAdd<Identity>>      ? 12
                                  : is_limited<FastPath>                            ? 6
                                                                                    : 8;
/// Terms per pass: this many rows of one tile's columns of b stay in the first-level cache.
constexpr std::size_t depth_block = 256;

/// Columns of b and of c that one column of tiles covers; `stride` is the distance between their rows.
struct Panel {
  const float* b;
  std::size_t b_stride;
  float* c;
  std::size_t c_stride;
};

/// How all sums are added up: by `step`, and faster by `fast_path` where that is valid.
template <typename Step, typename FastPath = NoFastPath>
struct Order {
  FastPath fast_path{};
  AccumulateOrder order;
  std::size_t terms_per_pass;  ///< at most depth_block if there is a fast path
  Step step;
  float largest_a = 0;  ///< magnitude; only for a `FastPath` that is limited by it
};

/// The terms [k0, k1) of every sum. A pass goes on from the sum so far, or if it is a chunk is a sum of its
/// own, which is then added to it.
struct DepthBlock {
  std::size_t k0, k1;
  Panel panel;          ///< from term k0 on
  const float* scaled;  ///< the panel's b for the fast path, contiguous; null: it may not start
};

template <std::size_t rows, std::size_t vectors>
HALFSCOPE_HD void multiply_all(Sums<rows, vectors>& sums, float factor) {
  for (auto& row : sums) {
    for (FloatVec& sum : row) sum *= factor;
  }
}

/// Rows of a, and of those the columns that belong to some terms.
template <std::size_t rows>
struct Left {
  const float* row[rows];
  const std::int32_t* column;
};

/// Rows of b that belong to some terms.
struct Right {
  const float* row;
  std::size_t stride;
};

/// Adds `terms` products to every sum.
template <std::size_t rows, std::size_t vectors, typename Step>
HALFSCOPE_HD void add_products(Sums<rows, vectors>& sums, const Left<rows>& a, Right b, std::size_t terms,
                               Step& step) {
  for (std::size_t k = 0; k < terms; ++k, b.row += b.stride) {
    FloatVec b_k[vectors];
    for (std::size_t j = 0; j < vectors; ++j) b_k[j] = load(b.row + j * lanes);
    const std::int32_t column = a.column[k];
#pragma GCC unroll 12
    for (std::size_t i = 0; i < rows; ++i) {
      const FloatVec a_ik = all_lanes(a.row[i][column]);
      if constexpr (requires { step.add_row(sums[i], a_ik, b_k); }) {
        step.add_row(sums[i], a_ik, b_k);
      } else {
        for (std::size_t j = 0; j < vectors; ++j) sums[i][j] = step.add_product(sums[i][j], a_ik, b_k[j]);
      }
    }
  }
}

/// The same by `step` to sums as they were before a fast path that was not valid. Rare, and out of line, so
/// that it takes no registers elsewhere.
template <std::size_t rows, std::size_t vectors, typename Step, typename FastPath>
[[gnu::noinline]] void recompute(Sums<rows, vectors>& sums, const Left<rows>& a, Right b, std::size_t terms,
                                 const Order<Step, FastPath>& order) {
  Step step = order.step;
  multiply_all(sums, 1 / order.fast_path.scale);
  add_products(sums, a, b, terms, step);
  multiply_all(sums, order.fast_path.scale);
}

/// Adds a pass's products by the fast path, and where its sums are not valid, the last terms anew by `step`.
template <std::size_t rows, std::size_t vectors, typename Step, typename FastPath>
HALFSCOPE_HD void fast_products(Sums<rows, vectors>& sums, Left<rows> a, const DepthBlock& pass,
                                const Order<Step, FastPath>& order) {
  const std::size_t depth = pass.k1 - pass.k0;
  multiply_all(sums, order.fast_path.scale);
  for (std::size_t k = 0; k < depth; k += FastPath::terms, a.column += FastPath::terms) {
    const std::size_t terms = depth - k < FastPath::terms ? depth - k : FastPath::terms;
    Sums<rows, vectors> before;
    std::memcpy(before, sums, sizeof sums);
    FastPath fast_path = order.fast_path;
    add_products(sums, a, {pass.scaled + k * vectors * lanes, vectors * lanes}, terms, fast_path);
    if (fast_path.valid(sums)) continue;
    recompute(before, a, {pass.panel.b + k * pass.panel.b_stride, pass.panel.b_stride}, terms, order);
    std::memcpy(sums, before, sizeof sums);
  }
  multiply_all(sums, 1 / order.fast_path.scale);
}

template <typename FastPath, std::size_t rows, std::size_t vectors>
HALFSCOPE_HD bool sums_allow(const Sums<rows, vectors>& sums) {
  if constexpr (is_limited<FastPath>) return FastPath::can_start(sums);
  return true;
}

/// One tile of c: `rows` by `vectors * lanes`. Between passes the partial sums wait in c, unrounded, so that
/// passes that are no chunks do not change a bit.
template <std::size_t rows, std::size_t vectors, typename Step, typename FastPath>
void tile(const GatherMatrix& a, std::size_t m, const DepthBlock& pass, const Order<Step, FastPath>& order) {
  const bool is_chunk = order.order == AccumulateOrder::chunked;
  Left<rows> left{{}, a.column.data() + pass.k0};
  Sums<rows, vectors> sums;
  float* const c = pass.panel.c + m * pass.panel.c_stride;
  for (std::size_t i = 0; i < rows; ++i) {
    left.row[i] = static_cast<const float*>(a.data.data) + a.row[m + i];
    for (std::size_t j = 0; j < vectors; ++j) {
      sums[i][j] = pass.k0 == 0 || is_chunk ? FloatVec{} : load(c + i * pass.panel.c_stride + j * lanes);
    }
  }
  const auto add = [&] {
    Step step = order.step;
    add_products(sums, left, {pass.panel.b, pass.panel.b_stride}, pass.k1 - pass.k0, step);
  };
  if constexpr (has_fast_path<FastPath>) {
    if (pass.scaled != nullptr && sums_allow<FastPath>(sums)) {
      fast_products(sums, left, pass, order);
    } else {
      add();
    }
  } else {
    add();
  }
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < vectors; ++j) {
      float* const place = c + i * pass.panel.c_stride + j * lanes;
      if (is_chunk) sums[i][j] += pass.k0 == 0 ? FloatVec{} : load(place);
      store(place, with_one_nan(sums[i][j]));
    }
  }
}

}  // namespace
}  // namespace halfscope
