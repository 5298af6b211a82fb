// Matrix products by the gather GEMM.
#include "sim/layers/matrix.hpp"

#include <halfscope/kernel/gemm/gemm.hpp>
#include <halfscope/kernel/reduce/reduce.hpp>

#include "lib/nn/elementwise.hpp"

namespace halfscope {

void multiply_rows(const ConstArrayView& x, const Array& weight, const AccumulateModel& model,
                   std::span<float> y) {
  multiply_rows(x, MatrixView{weight.view(), weight.extent(0), weight.extent(1)}, model, y);
}

void multiply_rows(const ConstArrayView& x, const MatrixView& weight, const AccumulateModel& model,
                   std::span<float> y) {
  const std::int64_t in = weight.rows, out = weight.columns;
  const auto rows = strided_offsets(static_cast<std::int64_t>(x.size()) / in, in);
  const auto columns = strided_offsets(in, 1);
  gemm({ElementReader(x), rows.values(), columns.values(), MatrixLayout::row_major, in},
       {ElementReader(weight.values), in, out}, y, model);
}

Array transposed(const Array& matrix) {
  Array result({matrix.extent(1), matrix.extent(0)}, matrix.dtype());
  transpose(matrix.view(), matrix.extent(0), matrix.extent(1), result.view());
  return result;
}

Array weight_gradient(const RowProduct& product, const AccumulateModel& model) {
  Array gradient({product.in, product.out});
  const std::int64_t count = static_cast<std::int64_t>(product.x.size()) / product.in;
  const auto rows = strided_offsets(product.in, 1);
  const auto columns = strided_offsets(count, product.in);
  gemm({ElementReader(product.x), rows.values(), columns.values(), MatrixLayout::transposed, product.in},
       {ElementReader(product.y_gradient), count, product.out}, gradient.values(), model);
  return gradient;
}

Array bias_gradient(const ConstArrayView& y_gradient, std::int64_t out) {
  Array gradient({out});
  const std::int64_t rows = static_cast<std::int64_t>(y_gradient.size()) / out;
  column_sums({.x = ElementReader(y_gradient), .rows = rows, .columns = out}, ScopedAccumulate{}.model,
              gradient.values());
  return gradient;
}

}  // namespace halfscope
