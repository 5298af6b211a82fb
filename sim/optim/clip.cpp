// The norm, and scaling by it.
#include "sim/optim/clip.hpp"

#include <cmath>

#include <halfscope/kernel/elementwise.hpp>
#include <halfscope/kernel/sum_of_squares.hpp>

namespace halfscope {

double gradient_norm(const ParameterStore& store) {
  double sum = 0;
  for (const Parameter& parameter : store.parameters) sum += sum_of_squares(parameter.gradient.values());
  return std::sqrt(sum);
}

void clip_gradients(ParameterStore& store, double largest_norm) {
  const double norm = gradient_norm(store);
  if (norm <= largest_norm) return;
  const auto factor = static_cast<float>(largest_norm / norm);
  for (Parameter& parameter : store.parameters) {
    scale(parameter.gradient.values(), factor, parameter.gradient.values());
  }
}

}  // namespace halfscope
