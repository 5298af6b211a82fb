// Forward and backward of the fully connected layer.
#include "sim/layers/linear.hpp"

#include <halfscope/kernel/elementwise.hpp>
#include <halfscope/kernel/gemm.hpp>
#include <halfscope/kernel/reduce.hpp>

namespace halfscope {
namespace {

struct Extents {
  std::int64_t batch, in, out;
};

/// (batch, in) gradient = y_gradient (batch, out) times the transposed weight.
Array input_gradient(const Tape& tape, const Array& y_gradient, const Array& weight, const Extents& extents) {
  Array transposed({extents.out, extents.in});
  transpose(weight.values(), extents.in, extents.out, transposed.values());
  Array gradient({extents.batch, extents.in});
  const auto rows = strided_offsets(extents.batch, extents.out);
  const auto columns = strided_offsets(extents.out, 1);
  gemm({y_gradient.data(), rows, columns}, {transposed.data(), extents.out, extents.in}, gradient.values(),
       tape.policy().products);
  return gradient;
}

/// (in, out) gradient = the transposed x (batch, in) times y_gradient (batch, out).
Array weight_gradient(const Tape& tape, const Array& x, const Array& y_gradient, const Extents& extents) {
  Array gradient({extents.in, extents.out});
  const auto rows = strided_offsets(extents.in, 1);
  const auto columns = strided_offsets(extents.batch, extents.in);
  gemm({x.data(), rows, columns}, {y_gradient.data(), extents.batch, extents.out}, gradient.values(),
       tape.policy().products);
  return gradient;
}

}  // namespace

TensorRef linear(Tape& tape, const std::string& name, TensorRef x, LinearParameters parameters) {
  const TensorRef weight = tape.parameter(parameters.weight);
  const TensorRef bias = tape.parameter(parameters.bias);
  const Array& w = tape.value(weight);
  const std::int64_t batch = tape.value(x).extent(0);
  const Extents extents{batch, w.extent(0), w.extent(1)};
  if (static_cast<std::int64_t>(tape.value(x).size()) != batch * extents.in) {
    throw RequestError("layer " + name + ": input " + to_string(tape.value(x).shape()) +
                       " does not fit weight " + to_string(w.shape()));
  }
  Array y({batch, extents.out});
  const auto rows = strided_offsets(batch, extents.in);
  const auto columns = strided_offsets(extents.in, 1);
  gemm({tape.value(x).data(), rows, columns}, {w.data(), extents.in, extents.out}, y.values(),
       tape.policy().products);
  add_to_rows(tape.value(bias).values(), y.values());

  const auto backward = [x, weight, bias, extents](Tape& t, Array gradient) {
    Array bias_gradient({extents.out});
    column_sums({.x = gradient.data(), .rows = extents.batch, .columns = extents.out},
                ScopedAccumulate{}.model, bias_gradient.values());
    t.add_gradient(bias, std::move(bias_gradient));
    t.add_gradient(weight, weight_gradient(t, t.value(x), gradient, extents));
    if (!t.needs_gradient(x)) return;
    Array x_gradient = input_gradient(t, gradient, t.value(weight), extents);
    x_gradient.reshape(t.value(x).shape());
    t.add_gradient(x, std::move(x_gradient));
  };
  return tape.record({.name = name, .value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
