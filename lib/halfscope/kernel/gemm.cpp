// The matrix product with rounded adds, compiled once per instruction set: a register tile of independent
// sums, k ascending.
#include <halfscope/kernel/gemm.hpp>

#include <type_traits>

#include <halfscope/kernel/fp16_lanes.hpp>
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

/// Whether a step's sums may turn out not to hold. Then b's terms are given and the sums kept times
/// `Step::scale`.
template <typename Step>
constexpr bool is_scaled = requires {
  Step::scale;
};

template <typename Step>
constexpr float scale_of() {
  if constexpr (is_scaled<Step>) return Step::scale;
  return 1;
}

template <typename Step, std::size_t rows, std::size_t vectors>
HALFSCOPE_HD bool all_hold(const Floats (&sum)[rows][vectors]) {
  bool all = true;
  if constexpr (is_scaled<Step>) {
    for (const auto& row : sum)
      for (const Floats& x : row) all = all && Step::holds(x);
  }
  return all;
}

/// One tile of c: `rows` by `vectors * lanes`, from a panel that starts at term k0. Between passes the
/// partial sums wait in c, unrounded, so that passes that are no chunks do not change a bit. False, and c as
/// it was, where the sums do not hold.
template <std::size_t rows, std::size_t vectors, typename Step>
bool tile(const GatherMatrix& a, const Panel& panel, std::size_t m, const Pass<Step>& pass) {
  const Step step = pass.step;
  const bool starts_at_zero = pass.k0 == 0 || pass.order == AccumulateOrder::chunked;
  const float* a_row[rows];
  Floats sum[rows][vectors];
  for (std::size_t i = 0; i < rows; ++i) {
    a_row[i] = static_cast<const float*>(a.data.data) + a.row[m + i];
    for (std::size_t j = 0; j < vectors; ++j) {
      sum[i][j] =
          starts_at_zero ? Floats{} : load(panel.c + (m + i) * panel.c_stride + j * lanes) * scale_of<Step>();
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
  if (!all_hold<Step>(sum)) return false;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < vectors; ++j) {
      float* c = panel.c + (m + i) * panel.c_stride + j * lanes;
      sum[i][j] *= 1 / scale_of<Step>();
      if (pass.order == AccumulateOrder::chunked) sum[i][j] += pass.k0 == 0 ? Floats{} : load(c);
      store(c, with_one_nan(sum[i][j]));
    }
  }
  return true;
}

/// How all sums are added up: by `step`, and where those do not hold by `fallback`.
template <typename Step, typename Fallback = Step>
struct Order {
  AccumulateOrder order;
  std::size_t terms_per_pass;  ///< at most depth_block where the step is scaled
  Step step;
  Fallback fallback = {};
};

/// The terms from k0 on of a panel.
Panel from_term(const Panel& panel, std::size_t k0) {
  return {panel.b + k0 * panel.b_stride, panel.b_stride, panel.c, panel.c_stride};
}

/// `terms` of a panel, scaled: copied together where several tiles read them, since rows of b that are a
/// power of two apart would push each other out of the cache.
template <std::size_t width>
Panel copied(const Panel& panel, std::size_t terms, float scale, float* copy) {
  for (std::size_t k = 0; k < terms; ++k) {
    for (std::size_t n = 0; n < width; n += lanes) {
      store(copy + k * width + n, load(panel.b + k * panel.b_stride + n) * scale);
    }
  }
  return {copy, width, panel.c, panel.c_stride};
}

template <std::size_t vectors, typename Step, typename Fallback>
void column_of_tiles(const GatherMatrix& a, const Panel& panel, const RowRange& range,
                     const Order<Step, Fallback>& order) {
  constexpr std::size_t rows = tile_rows<Step>;
  const std::size_t depth = a.column.size();
  const auto last = static_cast<std::size_t>(range.last);
  constexpr std::size_t width = vectors * lanes;
  alignas(vector_bytes) float copy[depth_block * width];
  const bool copies = is_scaled<Step> || (order.terms_per_pass <= depth_block &&
                                          range.last - range.first > 2 * std::int64_t{rows});
  for (std::size_t k0 = 0; k0 == 0 || k0 < depth; k0 += order.terms_per_pass) {
    const std::size_t k1 = k0 + order.terms_per_pass < depth ? k0 + order.terms_per_pass : depth;
    const Panel original = from_term(panel, k0);
    const Panel here = copies ? copied<width>(original, k1 - k0, scale_of<Step>(), copy) : original;
    const auto add_terms = [&]<std::size_t count>(std::size_t m) {
      const bool holds = tile<count, vectors>(a, here, m, Pass<Step>{k0, k1, order.order, order.step});
      if constexpr (is_scaled<Step>) {
        if (!holds) tile<count, vectors>(a, original, m, Pass<Fallback>{k0, k1, order.order, order.fallback});
      }
    };
    auto m = static_cast<std::size_t>(range.first);
    for (; m + rows <= last; m += rows) add_terms.template operator()<rows>(m);
    for (; m + 4 <= last; m += 4) add_terms.template operator()<4>(m);
    for (; m < last; ++m) add_terms.template operator()<1>(m);
  }
}

/// The last columns, too few for a vector: computed in a copy that is padded with the same columns again.
template <typename Step, typename Fallback>
void narrow_column(const GatherMatrix& a, const Panel& panel, const RowRange& range, std::size_t width,
                   const Order<Step, Fallback>& order) {
  const std::size_t depth = a.column.size();
  const auto first_row = static_cast<std::size_t>(range.first);
  const auto rows = static_cast<std::size_t>(range.last) - first_row;
  float* padded = new float[(depth + rows) * lanes]{};
  for (std::size_t k = 0; k < depth; ++k) {
    for (std::size_t n = 0; n < lanes; ++n) padded[k * lanes + n] = panel.b[k * panel.b_stride + n % width];
  }
  float* c = padded + depth * lanes;
  const GatherMatrix some_rows{a.data, a.row.subspan(first_row, rows), a.column, a.layout, a.stride};
  column_of_tiles<1>(some_rows, {padded, lanes, c, lanes}, {0, range.last - range.first}, order);
  for (std::size_t m = 0; m < rows; ++m) {
    for (std::size_t n = 0; n < width; ++n) panel.c[(first_row + m) * panel.c_stride + n] = c[m * lanes + n];
  }
  delete[] padded;
}

template <typename Step, typename Fallback>
void multiply(const GatherMatrix& a, const DenseMatrix& b, float* c, const OutputRange& range,
              const Order<Step, Fallback>& order) {
  const auto columns = static_cast<std::size_t>(b.columns),
             last = static_cast<std::size_t>(range.last_column);
  auto n = static_cast<std::size_t>(range.first_column);
  const auto panel = [&] {
    return Panel{static_cast<const float*>(b.data.data) + n, columns, c + n, columns};
  };
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
    multiply(a, b, c, range, Order<decltype(step)>{{}, depth_block, step, step});
  };
#if defined(__FMA__)
  if (format == FloatFormat{}) return with(FuseFp32{});
#endif
#if defined(__AVX512F__)
  if (format == FloatFormat{5, 10}) {
    return with(FuseByOdd<RoundToFp16>{});
  }
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
    multiply(a, b, c, range, Order<decltype(step)>{model.order, terms, step, step});
  };
  if (model.format == FloatFormat{}) return with(InTurn<KeepFp32>{});
#if defined(__FMA__)
  if (model.format == FloatFormat{5, 10} && terms <= depth_block) {
    return multiply(a, b, c, range, Order<ScaledInTurn, InTurn<RoundToFp16>>{model.order, terms, {}, {}});
  }
#endif
  if (model.format == FloatFormat{5, 10}) return with(InTurn<RoundToFp16>{});
  with(InTurn<RoundTo>{{rounding_grid({.format = model.format})}});
}
template void gemm_range_isa<target_isa>(const GatherMatrix&, const DenseMatrix&, float*, const OutputRange&,
                                         const AccumulateModel&);

}  // namespace halfscope
