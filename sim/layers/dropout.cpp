// Masks from counter-based random bits.
#include "sim/layers/layers.hpp"

#include <fmt/format.h>

#include <memory>

#include "lib/nn/dropout.hpp"
#include "lib/nn/strided_elementwise.hpp"

namespace halfscope {

TensorRef dropout(Tape& tape, const std::string& name, TensorRef x, float probability) {
  if (!(probability >= 0 && probability < 1)) {
    throw InvalidArgument(fmt::format("layer {}: dropout probability {}: give 0 or more, below 1", name,
                                      static_cast<double>(probability)));
  }
  if (probability == 0 || tape.phase() == Phase::evaluation) return x;
  const Operation operation = tape.operation("dropout", name, {&x});
  auto factors = std::make_shared<Array>(tape.value(x).shape());
  dropout_factors(tape.random_stream(name + ".mask"), probability, factors->values());
  Array y(factors->shape());
  combine(Combination::product, tape.value(x).view(), factors->values(), y.values());
  const auto backward = [x, factors](BackwardScope& scope, Array gradient) {
    gradient = to_dtype(std::move(gradient), DType::f32);
    combine(Combination::product, gradient.values(), factors->values(), gradient.values());
    scope.add_gradient(x, std::move(gradient));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
