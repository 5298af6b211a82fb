// Products of the rows of activations with a weight matrix, and their gradients: what linear and recurrent
// layers share.
#pragma once

#include <span>

#include "sim/tape/tape.hpp"

namespace halfscope {

/// A matrix (rows, columns), row by row.
struct MatrixView {
  ConstArrayView values;
  std::int64_t rows = 0, columns = 0;
};
/// y (rows, out) = x (rows, in) weight (in, out).
void multiply_rows(const ConstArrayView& x, const MatrixView& weight, const AccumulateModel& model,
                   std::span<float> y);
void multiply_rows(const ConstArrayView& x, const Array& weight, const AccumulateModel& model,
                   std::span<float> y);

/// (columns, rows) of a matrix (rows, columns), in its storage.
[[nodiscard]] Array transposed(const Array& matrix);

/// Factors of the gradients of `y = x weight`: x (rows, in), y_gradient (rows, out).
struct RowProduct {
  ConstArrayView x;
  ConstArrayView y_gradient;
  std::int64_t in = 0, out = 0;
};
/// (in, out) = the transposed x times y_gradient: one sum over all rows.
[[nodiscard]] Array weight_gradient(const RowProduct& product, const AccumulateModel& model);

/// (out): the sum of y_gradient (rows, out) over its rows, in FP32.
[[nodiscard]] Array bias_gradient(const ConstArrayView& y_gradient, std::int64_t out);

}  // namespace halfscope
