// Forward and backward of binary cross entropy.
#include "sim/layers/sigmoid_cross_entropy.hpp"

#include <algorithm>
#include <cmath>

#include <halfscope/kernel/elementary.hpp>

namespace halfscope {
namespace {

/// Element by element max(x, 0) - x t + log(1 + e^-|x|), whose exponential never exceeds 1.
Array element_losses(const Array& x, const Array& targets) {
  Array terms(x.shape());
  for (std::size_t i = 0; i < x.size(); ++i) terms[i] = -std::fabs(x[i]);
  apply(Elementary::exp, terms.values(), terms.values());
  for (float& term : terms.values()) term += 1.0f;
  apply(Elementary::log, terms.values(), terms.values());
  for (std::size_t i = 0; i < x.size(); ++i) terms[i] += std::max(x[i], 0.0f) - x[i] * targets[i];
  return terms;
}

}  // namespace

TensorRef sigmoid_cross_entropy(Tape& tape, const std::string& name, TensorRef logits, Array targets) {
  const Array& x = tape.value(logits);
  if (x.shape() != targets.shape() || x.empty()) {
    throw RequestError("layer " + name + ": targets " + to_string(targets.shape()) + " do not fit logits " +
                       to_string(x.shape()));
  }
  auto kept = std::make_shared<const Array>(std::move(targets));
  const float count = static_cast<float>(x.size());
  const float loss = accumulate(element_losses(x, *kept).values(), ScopedAccumulate{}.model) / count;

  const auto backward = [logits, count, kept](Tape& t, Array gradient) {
    Array x_gradient(kept->shape());
    apply(Elementary::sigmoid, t.value(logits).values(), x_gradient.values());
    const float factor = gradient[0] / count;
    for (std::size_t i = 0; i < x_gradient.size(); ++i) x_gradient[i] = (x_gradient[i] - (*kept)[i]) * factor;
    t.add_gradient(logits, std::move(x_gradient));
  };
  return tape.record(
      {.name = name, .value = Array::from({}, {loss}), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
