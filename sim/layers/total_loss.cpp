// Forward and backward of a weighted sum of losses.
#include <fmt/format.h>

#include <cmath>

#include "lib/nn/elementwise.hpp"
#include "sim/layers/losses.hpp"

namespace halfscope {
namespace {

void check_loss(const Tape& tape, const std::string& name, const WeightedLoss& term) {
  const Shape& shape = tape.value(term.loss).shape();
  if (!shape.empty())
    throw InvalidArgument("layer " + name + ": a loss is a scalar, not " + to_string(shape));
  if (std::isfinite(term.weight)) return;
  throw InvalidArgument(fmt::format("layer {}: the weight of a loss is a finite number, not {}", name,
                                    static_cast<double>(term.weight)));
}

/// factor * x, of scalars.
Array times(float factor, const Array& x) {
  Array product(Shape{});
  scale(x.view(), factor, product.values());
  return product;
}

}  // namespace

TensorRef total_loss(Tape& tape, const std::string& name, std::span<const WeightedLoss> losses) {
  if (losses.empty()) throw InvalidArgument("layer " + name + ": give at least one loss");
  std::vector<TensorRef> inputs;
  for (const WeightedLoss& term : losses) inputs.push_back(term.loss);
  const Operation operation = tape.operation("total_loss", name, inputs);
  std::vector<WeightedLoss> terms;
  for (std::size_t i = 0; i < losses.size(); ++i) terms.push_back({inputs[i], losses[i].weight});
  Array sum = Array::zeros({});
  for (const WeightedLoss& term : terms) {
    check_loss(tape, name, term);
    add(times(term.weight, tape.value(term.loss)).values(), sum.values());
  }
  const auto backward = [terms](BackwardScope& scope, Array gradient) {
    for (const WeightedLoss& term : terms)
      scope.add_gradient(term.loss, times(term.weight, gradient), Rounds::no);
  };
  return operation.record({.value = std::move(sum), .rounds = Rounds::no, .backward = backward});
}

TensorRef total_loss(Tape& tape, const std::string& name, std::span<const TensorRef> losses) {
  std::vector<WeightedLoss> terms;
  for (const TensorRef loss : losses) terms.push_back({.loss = loss});
  return total_loss(tape, name, terms);
}

}  // namespace halfscope
