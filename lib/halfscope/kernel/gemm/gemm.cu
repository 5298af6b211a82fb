// Matrix products with a named order of accumulation on the device: k ascending, one sum per element.
#include <halfscope/kernel/detail/device_adds.cuh>
#include <halfscope/kernel/gemm/detail/gemm_native.hpp>
#include <halfscope/kernel/gemm/detail/gemm_tensor_core.cuh>
#include <halfscope/kernel/gemm/detail/gemm_tile.cuh>

namespace halfscope::cuda {
namespace {

struct FillStrided {
  std::int64_t stride;
  std::int32_t* offsets;
  HALFSCOPE_HD void operator()(std::int64_t i) const { offsets[i] = static_cast<std::int32_t>(i * stride); }
};

/// Terms one after the other, added by `Step`; where the order is chunked, the sum of every `chunk` of them
/// is then added to the total.
template <typename Tile, AccumulateOrder order, typename Step>
struct OrderedGemm {
  static constexpr int threads = Tile::threads;
  static constexpr bool chunked = order == AccumulateOrder::chunked;
  using Shared = typename Tile::template Operands<float>;
  struct State {
    float sum[Tile::per][Tile::per] = {};
    float total[chunked ? Tile::per : 1][chunked ? Tile::per : 1] = {};
    std::int64_t in_chunk = 0;  ///< terms of the chunk that is being summed
  };
  Matrices matrices;
  std::int64_t chunk;
  Step step;

  HALFSCOPE_HD void fill(const BlockThread& here, std::int64_t pass, Shared& shared) const {
    Tile::fill(matrices, here, pass, shared, [](float x) { return x; });
  }
  HALFSCOPE_HD void use(const BlockThread& here, std::int64_t pass, const Shared& shared,
                        State& state) const {
    const std::int64_t left = matrices.depth - pass * Tile::depth;
    if (left >= Tile::depth) {
      for (int t = 0; t < Tile::depth; ++t) add_term(here, t, shared, state);
    } else {
      for (int t = 0; t < left; ++t) add_term(here, t, shared, state);
    }
  }
  HALFSCOPE_HD void finish(const BlockThread& here, State& state) const {
    end_chunk(state);
    Tile::for_elements(matrices, here, [&](int i, int j, std::int64_t m, std::int64_t n) {
      matrices.c[m * matrices.columns + n] = with_one_nan(chunked ? state.total[i][j] : state.sum[i][j]);
    });
  }

 private:
  HALFSCOPE_HD void add_term(const BlockThread& here, int t, const Shared& shared, State& state) const {
    float a[Tile::per], b[Tile::per];
    for (int i = 0; i < Tile::per; ++i) {
      a[i] = shared.a[t][here.thread / Tile::side + Tile::side * i];
      b[i] = shared.b[t][here.thread % Tile::side + Tile::side * i];
    }
    for (int i = 0; i < Tile::per; ++i)
      for (int j = 0; j < Tile::per; ++j) state.sum[i][j] = step.add_product(state.sum[i][j], a[i], b[j]);
    if (chunked && ++state.in_chunk == chunk) end_chunk(state);
  }
  HALFSCOPE_HD void end_chunk(State& state) const {
    if constexpr (chunked) {
      if (state.in_chunk == 0) return;
      for (int i = 0; i < Tile::per; ++i) {
        for (int j = 0; j < Tile::per; ++j) {
          state.total[i][j] += state.sum[i][j];
          state.sum[i][j] = 0;
        }
      }
      state.in_chunk = 0;
    }
  }
};

template <AccumulateOrder order, typename Step>
void ordered_gemm(const Matrices& matrices, int chunk, const Step& step) {
  with_tile<4>(matrices, [&]<typename Tile>(Tile) {
    for_each_block(Tile::blocks(matrices.rows, matrices.columns),
                   (matrices.depth + Tile::depth - 1) / Tile::depth,
                   OrderedGemm<Tile, order, Step>{matrices, chunk, step}, "gemm");
  });
}

/// Product under a model that is sequential, chunked or fused.
void ordered_gemm(const Matrices& matrices, const AccumulateModel& model) {
  using enum AccumulateOrder;
  const auto in_order = [&](const auto& step) { ordered_gemm<sequential>(matrices, 0, step); };
  if (model.order == fused) return with_fused_steps(model.format, in_order);
  if (model.order == sequential) return with_separate_steps(model.format, in_order);
  with_separate_steps(model.format,
                      [&](const auto& step) { ordered_gemm<chunked>(matrices, model.chunk, step); });
}

}  // namespace

void fill_strided(std::int64_t stride, std::span<std::int32_t> offsets) {
  for_each(std::ssize(offsets), FillStrided{stride, on_device(offsets)}, "strided_offsets");
}

void gemm(const GatherMatrix& a, const DenseMatrix& b, std::span<float> c, const AccumulateModel& model) {
  const ConstArrayView b_values(b.data.data, static_cast<std::size_t>(b.rows * b.columns), b.data.storage);
  const ConstArrayView a_start(a.data.data, a.row.empty() || a.column.empty() ? 0u : 1u, a.data.storage);
  const Matrices matrices{.a = on_device(a_start),
                          .a_row = on_device(a.row),
                          .a_column = on_device(a.column),
                          .b = on_device(b_values),
                          .c = on_device(c),
                          .rows = std::ssize(a.row),
                          .depth = b.rows,
                          .columns = b.columns};
  if (c.empty()) return;
  const ProductMethod method = product_method(a.data.storage, b.data.storage, model, device_tensor_core());
  if (method != ProductMethod::emulated) {
    return for_native_products(a, b, c, [&](const DeviceProduct& part) { multiply_native(method, part); });
  }
  if (model.order == AccumulateOrder::tensor_core) return tensor_core_gemm(matrices, model);
  ordered_gemm(matrices, model);
}

}  // namespace halfscope::cuda
