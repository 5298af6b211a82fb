// Forward and backward of the fully connected layer.
#include "sim/layers/layers.hpp"

#include <memory>
#include <optional>

#include "lib/nn/elementwise.hpp"

#include "sim/layers/matrix.hpp"
#include "sim/layers/operands.hpp"

namespace halfscope {
namespace {

/// The shape of the output; throws where x does not fit the weight (in, out).
Shape output_shape(const std::string& name, const Array& x, std::int64_t in, std::int64_t out) {
  Shape shape = x.shape();
  if (shape.size() > 1 && shape.back() == in) {
    shape.back() = out;
    return shape;
  }
  if (shape.empty() || static_cast<std::int64_t>(x.size()) != shape[0] * in) {
    throw InvalidArgument("layer " + name + ": input " + to_string(shape) + " does not fit weight " +
                          to_string(Shape{in, out}));
  }
  return {shape[0], out};
}

/// Tensors of a layer y = x w; the forward product sums over `weight_axis` of the stored weight.
struct LinearTensors {
  TensorRef x, weight;
  SummedAxis weight_axis;
};

ProductImages forward_images(const Operation& operation, const Operands& operands,
                             const LinearTensors& tensors) {
  const Array &x = operation.value(tensors.x), &w = operation.value(tensors.weight);
  const bool sums_rows = tensors.weight_axis == SummedAxis::rows;
  const std::int64_t in = sums_rows ? w.extent(0) : w.extent(1);
  const SummedAxis other = sums_rows ? SummedAxis::columns : SummedAxis::rows;
  return {operands.images(operation.casts(), {x, static_cast<std::int64_t>(x.size()) / in, in},
                          {x_of_forward, SummedAxis::columns},
                          {x_of_weight, SummedAxis::rows, operation.needs_gradient(tensors.weight)}),
          operands.images(operation.casts(), {w, w.extent(0), w.extent(1)},
                          {weight_of_forward, tensors.weight_axis},
                          {weight_of_data, other, operation.needs_gradient(tensors.x)})};
}

/// |x| of host or device memory: max(x, 0) + max(-x, 0).
Array magnitudes_of(const Array& x) {
  Array negative(x.shape()), positive(x.shape());
  scale(x.view(), -1, negative.values());
  relu(negative.view(), negative.view());
  relu(x.view(), positive.view());
  add(negative.view(), positive.values());
  return positive;
}

/// The sum over all rows of x times the gradient, or of their magnitudes.
Array summed_terms(GradientTerms terms, const Array& x, const Array& gradient, const RowProduct& extents,
                   const AccumulateModel& model) {
  if (terms == GradientTerms::plain)
    return weight_gradient({x.view(), gradient.view(), extents.in, extents.out}, model);
  const Array left = magnitudes_of(x), right = magnitudes_of(gradient);
  return weight_gradient({left.view(), right.view(), extents.in, extents.out}, model);
}

/// Images of the output's gradient (rows, out) for the gradient of x, and for that of the weight.
OperandImages gradient_images(const BackwardScope& scope, const Operands& operands,
                              const LinearTensors& tensors, const Array& gradient) {
  const Shape& weight = scope.value(tensors.weight).shape();
  const std::int64_t out = tensors.weight_axis == SummedAxis::rows ? weight[1] : weight[0];
  return operands.images(scope.casts(), {gradient, static_cast<std::int64_t>(gradient.size()) / out, out},
                         {gradient_of_data, SummedAxis::columns, scope.needs_gradient(tensors.x)},
                         {gradient_of_weight, SummedAxis::rows, scope.needs_gradient(tensors.weight)});
}

/// y = x w, plus the bias if there is one.
TensorRef multiplied(Tape& tape, const std::string& name, TensorRef x, Parameter& matrix, Parameter* added) {
  const Operation operation = tape.operation("linear", name, {&x});
  const TensorRef weight = operation.parameter(matrix);
  const std::optional<TensorRef> bias =
      added != nullptr ? std::optional(operation.parameter(*added)) : std::nullopt;
  const Array& w = tape.value(weight);
  const AccumulateModel model = operation.policy().products;
  Array y(output_shape(name, tape.value(x), w.extent(0), w.extent(1)));
  const Operands operands(operation, name);
  const LinearTensors tensors{x, weight, SummedAxis::rows};
  const auto images = std::make_shared<ProductImages>(forward_images(operation, operands, tensors));
  multiply_rows(seen(images->x.first, tape.value(x)).view(), seen(images->weight.first, w), model,
                y.values());
  images->drop_first();
  if (bias) add_to_rows(tape.value(*bias).view(), y.values());

  const auto backward = [tensors, bias, model, operands, images](BackwardScope& scope, Array gradient) {
    const auto [x, weight, axis] = tensors;
    const Array& used_weight = scope.value(weight);
    const std::int64_t in = used_weight.extent(0), out = used_weight.extent(1);
    const OperandImages seen_gradient = gradient_images(scope, operands, tensors, gradient);
    if (bias) scope.add_gradient(*bias, bias_gradient(gradient.view(), out));
    if (scope.needs_gradient(weight))
      scope.add_gradient(weight,
                         summed_terms(scope.casts().gradient_terms(), seen(images->x.second, scope.value(x)),
                                      seen(seen_gradient.second, gradient), {{}, {}, in, out}, model));
    if (!scope.needs_gradient(x)) return;
    Array x_gradient(scope.value(x).shape());
    multiply_rows(seen(seen_gradient.first, gradient).view(),
                  transposed(seen(images->weight.second, used_weight)), model, x_gradient.values());
    scope.add_gradient(x, std::move(x_gradient));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace

TensorRef linear(Tape& tape, const std::string& name, TensorRef x, LinearParameters parameters) {
  return multiplied(tape, name, x, parameters.weight, &parameters.bias);
}

TensorRef linear(Tape& tape, const std::string& name, TensorRef x, Parameter& weight) {
  return multiplied(tape, name, x, weight, nullptr);
}

TensorRef linear_transposed(Tape& tape, const std::string& name, TensorRef x, LinearParameters parameters) {
  const Operation operation = tape.operation("linear", name, {&x});
  const TensorRef weight = operation.parameter(parameters.weight);
  const TensorRef bias = operation.parameter(parameters.bias);
  const AccumulateModel model = operation.policy().products;
  const Operands operands(operation, name);
  const LinearTensors tensors{x, weight, SummedAxis::columns};
  const Array& w = tape.value(weight);
  Array y(output_shape(name, tape.value(x), w.extent(1), w.extent(0)));
  const auto images = std::make_shared<ProductImages>(forward_images(operation, operands, tensors));
  multiply_rows(seen(images->x.first, tape.value(x)).view(), transposed(seen(images->weight.first, w)), model,
                y.values());
  images->drop_first();
  add_to_rows(tape.value(bias).view(), y.values());

  const auto backward = [tensors, bias, model, operands, images](BackwardScope& scope, Array gradient) {
    const auto [x, weight, axis] = tensors;
    const Array& used_weight = scope.value(weight);
    const std::int64_t out = used_weight.extent(0), in = used_weight.extent(1);
    Array bias_sums = bias_gradient(gradient.view(), out);
    bias_sums.reshape(scope.value(bias).shape());
    scope.add_gradient(bias, std::move(bias_sums));
    const OperandImages seen_gradient = gradient_images(scope, operands, tensors, gradient);
    scope.add_gradient(weight, weight_gradient({seen(seen_gradient.second, gradient).view(),
                                                seen(images->x.second, scope.value(x)).view(), out, in},
                                               model));
    if (!scope.needs_gradient(x)) return;
    Array x_gradient(scope.value(x).shape());
    multiply_rows(seen(seen_gradient.first, gradient).view(), seen(images->weight.second, used_weight), model,
                  x_gradient.values());
    scope.add_gradient(x, std::move(x_gradient));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
