// Matrix products with a named order of accumulation on the device: a thread per element.
#include <halfscope/arithmetic/fused_step.hpp>
#include <halfscope/kernel/device_adds.cuh>
#include <halfscope/kernel/gemm.hpp>
#include <halfscope/kernel/launch.cuh>

namespace halfscope::cuda {
namespace {

struct FillStrided {
  std::int64_t stride;
  std::int32_t* offsets;
  HALFSCOPE_HD void operator()(std::int64_t i) const { offsets[i] = static_cast<std::int32_t>(i * stride); }
};

/// The operands of a product, and where it goes.
struct Matrices {
  const float* a;
  const std::int32_t* a_row;
  const std::int32_t* a_column;
  const float* b;
  float* c;
  std::int64_t depth, columns;
};

/// A row of a and a column of b.
struct Pair {
  const float* a;
  const std::int32_t* a_column;
  const float* b;
  std::int64_t b_stride;
  HALFSCOPE_HD explicit Pair(const Matrices& matrices, std::int64_t i)
      : a(matrices.a + matrices.a_row[i / matrices.columns]),
        a_column(matrices.a_column),
        b(matrices.b + i % matrices.columns),
        b_stride(matrices.columns) {}
  [[nodiscard]] HALFSCOPE_HD float a_at(std::int64_t k) const { return a[a_column[k]]; }
  [[nodiscard]] HALFSCOPE_HD float b_at(std::int64_t k) const { return b[k * b_stride]; }
};

HALFSCOPE_HD float with_one_nan(float x) {
  return x == x ? x : from_bits(quiet_nan_bits);
}

/// Terms one after the other, `run` at a time: of chunks, which are sums of their own, or all of them.
template <typename Step>
struct OrderedElement {
  Matrices matrices;
  AccumulateOrder order;
  std::int64_t run;
  Step step;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const Pair pair(matrices, i);
    float total = 0;
    for (std::int64_t first = 0; first < matrices.depth; first += run) {
      const std::int64_t last = matrices.depth - first < run ? matrices.depth : first + run;
      float sum = 0;
      for (std::int64_t k = first; k < last; ++k) sum = step.add_product(sum, pair.a_at(k), pair.b_at(k));
      total = order == AccumulateOrder::chunked ? total + sum : sum;
    }
    matrices.c[i] = with_one_nan(total);
  }
};

/// The operands of a tensor core's step from term k on.
struct StepOperands {
  Pair pair;
  std::int64_t k;
  RoundingGrid grid;
  [[nodiscard]] HALFSCOPE_HD float a(int i) const {
    return round_on_grid<Rounding::nearest_even>(pair.a_at(k + i), grid);
  }
  [[nodiscard]] HALFSCOPE_HD float b(int i) const {
    return round_on_grid<Rounding::nearest_even>(pair.b_at(k + i), grid);
  }
};

template <int products>
struct TensorCoreElement {
  Matrices matrices;
  TensorCoreStep step;
  RoundingGrid grid;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    StepOperands operands{Pair(matrices, i), 0, grid};
    float sum = 0;
    for (; operands.k < matrices.depth; operands.k += products) {
      const std::int64_t left = matrices.depth - operands.k;
      const int count = left < products ? static_cast<int>(left) : products;
      sum = detail::fused_step<std::size_t{products}>(operands, count, sum, step);
    }
    matrices.c[i] = sum;
  }
};

template <int products>
void tensor_core_gemm(const Matrices& matrices, std::int64_t elements, const TensorCoreStep& step) {
  for_each(elements, TensorCoreElement<products>{matrices, step, rounding_grid({.format = step.input})},
           "gemm");
}

void tensor_core_gemm(const Matrices& matrices, std::int64_t elements, const AccumulateModel& model) {
  const TensorCoreStep& step = tensor_core_step(model.core, model.format, fp32);
  switch (step.products) {
    case 4:
      return tensor_core_gemm<4>(matrices, elements, step);
    case 8:
      return tensor_core_gemm<8>(matrices, elements, step);
    case 16:
      return tensor_core_gemm<16>(matrices, elements, step);
    default:
      return tensor_core_gemm<32>(matrices, elements, step);
  }
}

}  // namespace

void fill_strided(std::int64_t stride, std::span<std::int32_t> offsets) {
  for_each(static_cast<std::int64_t>(offsets.size()), FillStrided{stride, on_device(offsets)},
           "strided_offsets");
}

void gemm(const GatherMatrix& a, const DenseMatrix& b, std::span<float> c, const AccumulateModel& model) {
  const std::span b_values(b.data, static_cast<std::size_t>(b.rows * b.columns));
  const Matrices matrices{on_device(std::span(a.data, a.row.empty() || a.column.empty() ? 0u : 1u)),
                          on_device(a.row),
                          on_device(a.column),
                          on_device(b_values),
                          on_device(c),
                          b.rows,
                          b.columns};
  const auto elements = static_cast<std::int64_t>(c.size());
  if (model.order == AccumulateOrder::tensor_core) return tensor_core_gemm(matrices, elements, model);
  const std::int64_t all_terms = b.rows > 0 ? b.rows : 1;
  const std::int64_t run = model.order == AccumulateOrder::chunked ? model.chunk : all_terms;
  with_product_adds(model, [&]<typename Step>(const Step& step) {
    for_each(elements, OrderedElement<Step>{matrices, model.order, run, step}, "gemm");
  });
}

}  // namespace halfscope::cuda
