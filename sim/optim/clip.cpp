// The norm, and scaling by it.
#include "sim/optim/clip.hpp"

#include <cmath>

#include <halfscope/kernel/reduce/sum_of_squares.hpp>

#include "lib/nn/elementwise.hpp"

namespace halfscope {

double gradient_norm(const ParameterStore& store) {
  double sum = 0;
  for (const Parameter& parameter : store.parameters) sum += sum_of_squares(parameter.gradient.values());
  return std::sqrt(sum);
}

float clip_factor(double norm, double largest_norm) {
  return norm <= largest_norm ? 1.0f : static_cast<float>(largest_norm / norm);
}

void clip_gradients(ParameterStore& store, double largest_norm) {
  const float factor = clip_factor(gradient_norm(store), largest_norm);
  if (factor == 1) return;
  for (Parameter& parameter : store.parameters) {
    scale(parameter.gradient.values(), factor, parameter.gradient.values());
  }
}

}  // namespace halfscope
