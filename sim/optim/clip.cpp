// The norm, and scaling by it.
#include "sim/optim/clip.hpp"

#include <array>
#include <cmath>
#include <numeric>

#include <halfscope/kernel/elementwise.hpp>

namespace halfscope {
namespace {

constexpr std::size_t lanes = 8;

double sum_of_squares(std::span<const float> values) {
  std::array<double, lanes> sums{};
  const std::size_t whole = values.size() / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  for (std::size_t i = whole; i < values.size(); ++i) {
    sums[i - whole] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

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
