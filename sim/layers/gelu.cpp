// Forward and backward of both forms of GELU.

#include "lib/nn/elementary.hpp"
#include "lib/nn/elementwise.hpp"
#include "lib/nn/strided_elementwise.hpp"
#include "sim/layers/activations.hpp"
#include "sim/tape/filled.hpp"

namespace halfscope {
namespace {

constexpr float inverse_root_2 = 0.70710678118654752f;     // 1 / sqrt(2)
constexpr float inverse_root_2_pi = 0.39894228040143268f;  // 1 / sqrt(2 pi)
constexpr float root_2_over_pi = 0.79788456080286536f;     // sqrt(2 / pi)
constexpr float cubic = 0.044715f;

void multiply_into(const Array& a, Array& y) {
  combine(Combination::product, a.view(), y.view(), y.values());
}

/// factor * a + b, each of the two operations rounded to FP32.
Array scaled_sum(const Array& a, float factor, const Array& b) {
  Array y(a.shape());
  scale(a.view(), factor, y.values());
  add(b.view(), y.values());
  return y;
}

/// The half of x that GELU passes on: (1 + erf(x / sqrt(2))) / 2 or its likeness in tanh.
Array passed_share(const Array& x, Gelu form) {
  Array share(x.shape());
  if (form == Gelu::erf) {
    scale(x.view(), inverse_root_2, share.values());
    apply(Elementary::erf, share.values(), share.values());
  } else {
    Array cube = x.clone();
    multiply_into(x, cube);
    multiply_into(x, cube);
    scale(scaled_sum(cube, cubic, x).view(), root_2_over_pi, share.values());
    apply(Elementary::tanh, share.values(), share.values());
  }
  add(filled(x.shape(), 1).view(), share.values());
  scale(share.view(), 0.5f, share.values());
  return share;
}

/// The derivative of the share by x.
Array share_slope(const Array& x, const Array& share, Gelu form) {
  Array square = x.clone();
  multiply_into(x, square);
  Array slope(x.shape());
  if (form == Gelu::erf) {
    scale(square.view(), -0.5f, slope.values());
    apply(Elementary::exp, slope.values(), slope.values());
    scale(slope.view(), inverse_root_2_pi, slope.values());
    return slope;
  }
  // (1 - t^2) / 2 = 2 s (1 - s) of the share s = (1 + t) / 2.
  Array rest(x.shape());
  combine(Combination::difference, filled(x.shape(), 1).view(), share.view(), rest.values());
  multiply_into(share, rest);
  scale(scaled_sum(square, 3 * cubic, filled(x.shape(), 1)).view(), 2 * root_2_over_pi, slope.values());
  multiply_into(rest, slope);
  return slope;
}

}  // namespace

TensorRef gelu(Tape& tape, const std::string& name, TensorRef x, Gelu form) {
  const Operation operation = tape.operation("gelu", name, {&x});
  const Array input = to_dtype(tape.value(x).clone(), DType::f32);
  Array y = passed_share(input, form);
  multiply_into(input, y);
  const auto backward = [x, form](BackwardScope& scope, Array gradient) {
    const Array used = to_dtype(scope.value(x).clone(), DType::f32);
    const Array share = passed_share(used, form);
    Array slope = share_slope(used, share, form);
    multiply_into(used, slope);
    add(share.view(), slope.values());
    const Array floats = to_dtype(std::move(gradient), DType::f32);
    multiply_into(floats, slope);
    scope.add_gradient(x, std::move(slope));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
