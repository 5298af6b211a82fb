// Forward and backward of SiLU.
#include "lib/nn/elementary.hpp"
#include "lib/nn/elementwise.hpp"
#include "lib/nn/strided_elementwise.hpp"
#include "sim/layers/activations.hpp"
#include "sim/tape/filled.hpp"

namespace halfscope {
namespace {

Array sigmoids_of(const Array& x) {
  Array share(x.shape());
  apply(Elementary::sigmoid, x.values(), share.values());
  return share;
}

/// The derivative s (1 + x (1 - s)) of x s, s = sigmoid(x).
Array silu_slope(const Array& x) {
  const Array share = sigmoids_of(x), ones = filled(x.shape(), 1);
  Array slope(x.shape());
  combine(Combination::difference, ones.view(), share.view(), slope.values());
  combine(Combination::product, x.view(), slope.view(), slope.values());
  add(ones.view(), slope.values());
  combine(Combination::product, share.view(), slope.view(), slope.values());
  return slope;
}

}  // namespace

TensorRef silu(Tape& tape, const std::string& name, TensorRef x) {
  const Operation operation = tape.operation("silu", name, {&x});
  const Array input = to_dtype(tape.value(x).clone(), DType::f32);
  Array y = sigmoids_of(input);
  combine(Combination::product, input.view(), y.view(), y.values());
  const auto backward = [x](BackwardScope& scope, Array gradient) {
    Array slope = silu_slope(to_dtype(scope.value(x).clone(), DType::f32));
    combine(Combination::product, gradient.view(), slope.view(), slope.values());
    scope.add_gradient(x, std::move(slope));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
