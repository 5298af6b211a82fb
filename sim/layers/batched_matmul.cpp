// Forward and backward of products of two tensors.
#include <fmt/format.h>

#include <memory>

#include "lib/nn/elementwise.hpp"
#include "sim/layers/attention.hpp"
#include "sim/layers/matrix.hpp"
#include "sim/layers/operands.hpp"

namespace halfscope {
namespace {

/// Extents of each of `batch` products.
struct ProductExtents {
  std::int64_t batch = 1, rows = 0, inner = 0, columns = 0;
};

ProductExtents product_extents(const Tape& tape, const std::string& name, TensorRef a, TensorRef b,
                               Operand second) {
  const Shape &x = tape.value(a).shape(), &y = tape.value(b).shape();
  const auto refuse = [&] {
    return InvalidArgument(
        fmt::format("layer {}: {} times {}{}; give (batch, rows, inner) and {}", name, to_string(x),
                    second == Operand::transposed ? "the transposed " : "", to_string(y),
                    second == Operand::transposed ? "(batch, columns, inner)" : "(batch, inner, columns)"));
  };
  if (x.size() < 2 || x.size() != y.size() || tape.value(a).empty() || tape.value(b).empty()) throw refuse();
  ProductExtents e;
  for (std::size_t axis = 0; axis + 2 < x.size(); ++axis) {
    if (x[axis] != y[axis]) throw refuse();
    e.batch *= x[axis];
  }
  e.rows = x[x.size() - 2];
  e.inner = x.back();
  const std::int64_t first = y[y.size() - 2], last = y.back();
  e.columns = second == Operand::transposed ? first : last;
  if ((second == Operand::transposed ? last : first) != e.inner) throw refuse();
  return e;
}

/// Matrix n of `count` in `all`.
template <typename View>
View matrix_of(const View& all, std::int64_t n, std::int64_t count) {
  const std::size_t size = all.size() / static_cast<std::size_t>(count);
  return all.part(static_cast<std::size_t>(n) * size, size);
}

/// The transposes (batch, columns, rows) of matrices (batch, rows, columns).
Array all_transposed(const Array& matrices, std::int64_t batch, std::int64_t rows, std::int64_t columns) {
  Array turned({batch, columns, rows}, matrices.dtype());
  for (std::int64_t n = 0; n < batch; ++n)
    transpose(matrix_of(matrices.view(), n, batch), rows, columns, matrix_of(turned.view(), n, batch));
  return turned;
}

/// y (batch, rows, columns) = x (batch, rows, inner) times w (batch, inner, columns).
void multiply_all(const ConstArrayView& x, const ConstArrayView& w, const ProductExtents& e,
                  const AccumulateModel& model, std::span<float> y) {
  for (std::int64_t n = 0; n < e.batch; ++n) {
    const std::size_t size = y.size() / static_cast<std::size_t>(e.batch);
    multiply_rows(matrix_of(x, n, e.batch), MatrixView{matrix_of(w, n, e.batch), e.inner, e.columns}, model,
                  y.subspan(static_cast<std::size_t>(n) * size, size));
  }
}

/// w as (batch, inner, columns): itself, or its transposes, which `turned` holds.
const Array& plain_form(const Array& w, Operand form, const ProductExtents& e, Array& turned) {
  if (form == Operand::plain) return w;
  return turned = all_transposed(w, e.batch, e.columns, e.inner);
}

/// (batch, in, out): the transposed x (batch, rows, in) times g (batch, rows, out).
void multiply_all_transposed(const ConstArrayView& x, const ConstArrayView& g, std::int64_t batch,
                             std::int64_t in, std::int64_t out, const AccumulateModel& model, Array& y) {
  for (std::int64_t n = 0; n < batch; ++n) {
    const Array product = weight_gradient({matrix_of(x, n, batch), matrix_of(g, n, batch), in, out}, model);
    convert(product.view(), matrix_of(y.view(), n, batch));
  }
}

/// The tensors of a product y = a b.
struct Factors {
  TensorRef a, b;
  ProductExtents extents;
  Operand second;

  [[nodiscard]] SummedAxis axis_of_b(ProductKind product) const {
    const bool rows = (second == Operand::plain) == (product == ProductKind::forward);
    return rows ? SummedAxis::rows : SummedAxis::columns;
  }
};

ProductImages forward_images(const Operation& operation, const Operands& operands, const Factors& f) {
  const ProductExtents& e = f.extents;
  const bool plain = f.second == Operand::plain;
  return {
      operands.images(operation.casts(), {operation.value(f.a), e.rows, e.inner},
                      {x_of_forward, SummedAxis::columns},
                      {x_of_weight, SummedAxis::rows, operation.needs_gradient(f.b)}),
      operands.images(
          operation.casts(), {operation.value(f.b), plain ? e.inner : e.columns, plain ? e.columns : e.inner},
          {weight_of_forward, f.axis_of_b(ProductKind::forward)},
          {weight_of_data, f.axis_of_b(ProductKind::data_gradient), operation.needs_gradient(f.a)})};
}

OperandImages gradient_images(const BackwardScope& scope, const Operands& operands, const Factors& f,
                              const Array& gradient) {
  return operands.images(scope.casts(), {gradient, f.extents.rows, f.extents.columns},
                         {gradient_of_data, SummedAxis::columns, scope.needs_gradient(f.a)},
                         {gradient_of_weight, SummedAxis::rows, scope.needs_gradient(f.b)});
}

}  // namespace

TensorRef batched_matmul(Tape& tape, const std::string& name, TensorRef a, TensorRef b, Operand second) {
  const Operation operation = tape.operation("matmul", name, {&a, &b});
  const ProductExtents e = product_extents(tape, name, a, b, second);
  const AccumulateModel model = operation.policy().products;
  Shape shape = tape.value(a).shape();
  shape.back() = e.columns;
  Array y(std::move(shape));
  const Operands operands(operation, name);
  const Factors factors{a, b, e, second};
  const auto images = std::make_shared<ProductImages>(forward_images(operation, operands, factors));
  const Array &seen_a = seen(images->x.first, tape.value(a)),
              &seen_b = seen(images->weight.first, tape.value(b));
  Array turned;
  multiply_all(seen_a.view(), plain_form(seen_b, second, e, turned).view(), e, model, y.values());
  images->drop_first();

  const auto backward = [factors, model, operands, images](BackwardScope& scope, Array gradient) {
    const auto& [a, b, e, second] = factors;
    const OperandImages of_gradient = gradient_images(scope, operands, factors, gradient);
    const Array &x = seen(images->x.second, scope.value(a)), &w = seen(images->weight.second, scope.value(b));
    const Array &to_a = seen(of_gradient.first, gradient), &to_b = seen(of_gradient.second, gradient);
    const ProductExtents back{e.batch, e.rows, e.columns, e.inner};
    if (scope.needs_gradient(a)) {
      Array of_a(x.shape());
      const Operand form = second == Operand::plain ? Operand::transposed : Operand::plain;
      Array turned;
      multiply_all(to_a.view(), plain_form(w, form, back, turned).view(), back, model, of_a.values());
      scope.add_gradient(a, std::move(of_a));
    }
    if (!scope.needs_gradient(b)) return;
    Array of_b(w.shape());
    if (second == Operand::transposed) {
      multiply_all_transposed(to_b.view(), x.view(), e.batch, e.columns, e.inner, model, of_b);
    } else {
      multiply_all_transposed(x.view(), to_b.view(), e.batch, e.inner, e.columns, model, of_b);
    }
    scope.add_gradient(b, std::move(of_b));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
