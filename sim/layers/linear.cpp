// Forward and backward of the fully connected layer.
#include "sim/layers/layers.hpp"

#include "lib/nn/elementwise.hpp"

#include "sim/layers/matrix.hpp"

namespace halfscope {
namespace {

/// The shape of the output; throws where x does not fit the weight.
Shape output_shape(const std::string& name, const Array& x, const Array& weight) {
  const std::int64_t in = weight.extent(0);
  Shape shape = x.shape();
  if (shape.size() > 1 && shape.back() == in) {
    shape.back() = weight.extent(1);
    return shape;
  }
  if (shape.empty() || static_cast<std::int64_t>(x.size()) != shape[0] * in) {
    throw InvalidArgument("layer " + name + ": input " + to_string(shape) + " does not fit weight " +
                          to_string(weight.shape()));
  }
  return {shape[0], weight.extent(1)};
}

}  // namespace

TensorRef linear(Tape& tape, const std::string& name, TensorRef x, LinearParameters parameters) {
  const Operation operation = tape.operation("linear", name, {&x});
  const TensorRef weight = operation.parameter(parameters.weight);
  const TensorRef bias = operation.parameter(parameters.bias);
  const Array& w = tape.value(weight);
  const AccumulateModel model = operation.policy().products;
  Array y(output_shape(name, tape.value(x), w));
  multiply_rows(tape.value(x).view(), w, model, y.values());
  add_to_rows(tape.value(bias).view(), y.values());

  const auto backward = [x, weight, bias, model](BackwardScope& scope, Array gradient) {
    const Array& used_weight = scope.value(weight);
    const std::int64_t in = used_weight.extent(0), out = used_weight.extent(1);
    scope.add_gradient(bias, bias_gradient(gradient.view(), out));
    if (scope.needs_gradient(weight))
      scope.add_gradient(weight, weight_gradient({scope.value(x).view(), gradient.view(), in, out}, model));
    if (!scope.needs_gradient(x)) return;
    Array x_gradient(scope.value(x).shape());
    multiply_rows(gradient.view(), transposed(used_weight), model, x_gradient.values());
    scope.add_gradient(x, std::move(x_gradient));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

TensorRef linear_transposed(Tape& tape, const std::string& name, TensorRef x, LinearParameters parameters) {
  const Operation operation = tape.operation("linear", name, {&x});
  const TensorRef weight = operation.parameter(parameters.weight);
  const TensorRef bias = operation.parameter(parameters.bias);
  const AccumulateModel model = operation.policy().products;
  const Array turned = transposed(tape.value(weight));
  Array y(output_shape(name, tape.value(x), turned));
  multiply_rows(tape.value(x).view(), turned, model, y.values());
  add_to_rows(tape.value(bias).view(), y.values());

  const auto backward = [x, weight, bias, model](BackwardScope& scope, Array gradient) {
    const Array& used_weight = scope.value(weight);
    const std::int64_t out = used_weight.extent(0), in = used_weight.extent(1);
    Array bias_sums = bias_gradient(gradient.view(), out);
    bias_sums.reshape(scope.value(bias).shape());
    scope.add_gradient(bias, std::move(bias_sums));
    scope.add_gradient(weight, weight_gradient({gradient.view(), scope.value(x).view(), out, in}, model));
    if (!scope.needs_gradient(x)) return;
    Array x_gradient(scope.value(x).shape());
    multiply_rows(gradient.view(), used_weight, model, x_gradient.values());
    scope.add_gradient(x, std::move(x_gradient));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
