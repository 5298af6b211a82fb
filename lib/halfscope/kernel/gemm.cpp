// The matrix product with rounded adds, compiled once per instruction set: a register tile of independent
// sums, k ascending.
#include <halfscope/kernel/gemm.hpp>

#include <type_traits>

#include <halfscope/kernel/fused_lanes.hpp>
#include <halfscope/kernel/round_lanes.hpp>
#include <halfscope/kernel/vector.hpp>

namespace halfscope {
namespace {

constexpr std::size_t tile_vectors = 2;

/// Product and sum rounded one after the other.
template <typename Round>
struct InTurn {
  Round to;
  HALFSCOPE_HD Floats add_product(Floats c, Floats a, Floats b) const { return to(c + to(a * b)); }
};

/// As many rows as leave registers for the rounding between the adds.
template <typename Step>
constexpr std::size_t tile_rows = lanes < 16                               ? 4
                                  : std::is_same_v<Step, InTurn<KeepFp32>> ? 12
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

/// The terms [k0, k1) of every sum. A pass goes on from the sum so far, or if it is a chunk is a sum of its
/// own, which is then added to it.
template <typename Step>
struct Pass {
  std::size_t k0, k1;
  AccumulateOrder order;
  Step step;
};

HALFSCOPE_HD Floats with_one_nan(Floats x) {
  return as_floats(x == x ? as_ints(x) : all_lanes(quiet_nan_bits));
}

/// One tile of c: `rows` by `vectors * lanes`, from a panel that starts at term k0. Between passes the
/// partial sums wait in c, unrounded, so that passes that are no chunks do not change a bit.
template <std::size_t rows, std::size_t vectors, typename Step>
void tile(const GatherMatrix& a, const Panel& panel, std::size_t m, const Pass<Step>& pass) {
  const Step step = pass.step;
  const bool starts_at_zero = pass.k0 == 0 || pass.order == AccumulateOrder::chunked;
  const float* a_row[rows];
  Floats sum[rows][vectors];
  for (std::size_t i = 0; i < rows; ++i) {
    a_row[i] = a.data + a.row[m + i];
    for (std::size_t j = 0; j < vectors; ++j) {
      sum[i][j] = starts_at_zero ? Floats{} : load(panel.c + (m + i) * panel.c_stride + j * lanes);
    }
  }
  const float* b_row = panel.b;
  for (std::size_t k = pass.k0; k < pass.k1; ++k, b_row += panel.b_stride) {
    Floats b_k[vectors];
    for (std::size_t j = 0; j < vectors; ++j) b_k[j] = load(b_row + j * lanes);
    const std::int32_t column = a.column[k];
#pragma GCC unroll 12
    for (std::size_t i = 0; i < rows; ++i) {
      const Floats a_ik = all_lanes(a_row[i][column]);
      for (std::size_t j = 0; j < vectors; ++j) sum[i][j] = step.add_product(sum[i][j], a_ik, b_k[j]);
    }
  }
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < vectors; ++j) {
      float* c = panel.c + (m + i) * panel.c_stride + j * lanes;
      if (pass.order == AccumulateOrder::chunked) sum[i][j] += pass.k0 == 0 ? Floats{} : load(c);
      store(c, with_one_nan(sum[i][j]));
    }
  }
}

/// How all sums are added up.
template <typename Step>
struct Order {
  AccumulateOrder order;
  std::size_t terms_per_pass;
  Step step;
};

/// The terms [k0, k1) of a panel: copied together where several tiles read them, since rows of b that are a
/// power of two apart would push each other out of the cache.
template <std::size_t width>
Panel panel_of_pass(const Panel& panel, std::size_t k0, std::size_t k1, float* copy) {
  const float* from = panel.b + k0 * panel.b_stride;
  if (copy == nullptr) return {from, panel.b_stride, panel.c, panel.c_stride};
  for (std::size_t k = 0; k < k1 - k0; ++k) {
    for (std::size_t n = 0; n < width; n += lanes) {
      store(copy + k * width + n, load(from + k * panel.b_stride + n));
    }
  }
  return {copy, width, panel.c, panel.c_stride};
}

template <std::size_t vectors, typename Step>
void column_of_tiles(const GatherMatrix& a, const Panel& panel, const RowRange& range,
                     const Order<Step>& order) {
  constexpr std::size_t rows = tile_rows<Step>;
  const std::size_t depth = a.column.size();
  const auto last = static_cast<std::size_t>(range.last);
  constexpr std::size_t width = vectors * lanes;
  alignas(vector_bytes) float copy[depth_block * width];
  const bool copies =
      order.terms_per_pass <= depth_block && range.last - range.first > 2 * std::int64_t{rows};
  for (std::size_t k0 = 0; k0 == 0 || k0 < depth; k0 += order.terms_per_pass) {
    const std::size_t k1 = k0 + order.terms_per_pass < depth ? k0 + order.terms_per_pass : depth;
    const Pass<Step> pass{k0, k1, order.order, order.step};
    const Panel here = panel_of_pass<width>(panel, k0, k1, copies ? copy : nullptr);
    auto m = static_cast<std::size_t>(range.first);
    for (; m + rows <= last; m += rows) tile<rows, vectors>(a, here, m, pass);
    for (; m + 4 <= last; m += 4) tile<4, vectors>(a, here, m, pass);
    for (; m < last; ++m) tile<1, vectors>(a, here, m, pass);
  }
}

/// The last columns, too few for a vector: computed in a copy that is padded with zeros.
template <typename Step>
void narrow_column(const GatherMatrix& a, const Panel& panel, const RowRange& range, std::size_t width,
                   const Order<Step>& order) {
  const std::size_t depth = a.column.size();
  const auto first_row = static_cast<std::size_t>(range.first);
  const auto rows = static_cast<std::size_t>(range.last) - first_row;
  float* padded = new float[(depth + rows) * lanes]{};
  for (std::size_t k = 0; k < depth; ++k) {
    for (std::size_t n = 0; n < width; ++n) padded[k * lanes + n] = panel.b[k * panel.b_stride + n];
  }
  float* c = padded + depth * lanes;
  const GatherMatrix some_rows{a.data, a.row.subspan(first_row, rows), a.column};
  column_of_tiles<1>(some_rows, {padded, lanes, c, lanes}, {0, range.last - range.first}, order);
  for (std::size_t m = 0; m < rows; ++m) {
    for (std::size_t n = 0; n < width; ++n) panel.c[(first_row + m) * panel.c_stride + n] = c[m * lanes + n];
  }
  delete[] padded;
}

template <typename Step>
void multiply(const GatherMatrix& a, const DenseMatrix& b, float* c, const OutputRange& range,
              const Order<Step>& order) {
  const auto columns = static_cast<std::size_t>(b.columns),
             last = static_cast<std::size_t>(range.last_column);
  auto n = static_cast<std::size_t>(range.first_column);
  const auto panel = [&] { return Panel{b.data + n, columns, c + n, columns}; };
  for (; n + tile_vectors * lanes <= last; n += tile_vectors * lanes) {
    column_of_tiles<tile_vectors>(a, panel(), range.rows, order);
  }
  for (; n + lanes <= last; n += lanes) column_of_tiles<1>(a, panel(), range.rows, order);
  if (n < last && range.rows.first < range.rows.last) narrow_column(a, panel(), range.rows, last - n, order);
}

/// `multiply` with one rounding per term.
void multiply_fused(const GatherMatrix& a, const DenseMatrix& b, float* c, const OutputRange& range,
                    const FloatFormat& format) {
  const auto with = [&](auto step) {
    multiply(a, b, c, range, Order<decltype(step)>{{}, depth_block, step});
  };
#if defined(__FMA__)
  if (format == FloatFormat{}) return with(FuseFp32{});
#endif
#if defined(__AVX512F__)
  if (format == FloatFormat{5, 10}) return with(FuseByOdd<RoundToFp16>{});
  with(FuseByOdd<RoundTo>{{rounding_grid({.format = format})}});
#else
  with(FuseByDouble{double_grid(format)});
#endif
}

}  // namespace

template <Isa isa>
void gemm_range_isa(const GatherMatrix& a, const DenseMatrix& b, float* c, const OutputRange& range,
                    const AccumulateModel& model) {
  if (model.order == AccumulateOrder::fused) return multiply_fused(a, b, c, range, model.format);
  const std::size_t terms =
      model.order == AccumulateOrder::chunked ? static_cast<std::size_t>(model.chunk) : depth_block;
  const auto with = [&](auto step) {
    multiply(a, b, c, range, Order<decltype(step)>{model.order, terms, step});
  };
  if (model.format == FloatFormat{}) return with(InTurn<KeepFp32>{});
  if (model.format == FloatFormat{5, 10}) return with(InTurn<RoundToFp16>{});
  with(InTurn<RoundTo>{{rounding_grid({.format = model.format})}});
}
template void gemm_range_isa<target_isa>(const GatherMatrix&, const DenseMatrix&, float*, const OutputRange&,
                                         const AccumulateModel&);

}  // namespace halfscope
