// The norm, and the factor that it makes.
#include "sim/optim/clip.hpp"

#include <cmath>
#include <deque>
#include <vector>

#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/reduce/sum_of_squares.hpp>

namespace halfscope {

std::size_t square_sums(const ParameterStore& store) {
  return sum_of_squares_lanes * store.parameters.size();
}

void sum_gradient_squares(const ParameterStore& store, float factor, std::span<double> sums) {
  std::deque<FloatsOf> floats;
  std::vector<std::span<const float>> gradients;
  for (const Parameter& parameter : store.parameters)
    gradients.push_back(floats.emplace_back(parameter.gradient).values());
  sums_of_squares(gradients, factor, sums);
}

double gradient_norm(std::span<const double> sums) {
  double all = 0;
  for (std::size_t first = 0; first < sums.size(); first += sum_of_squares_lanes) {
    double parameter = 0;
    for (const double lane : sums.subspan(first, sum_of_squares_lanes)) parameter += lane;
    all += parameter;
  }
  return std::sqrt(all);
}

float clip_factor(double norm, double largest_norm) {
  return norm <= largest_norm ? 1.0f : static_cast<float>(largest_norm / norm);
}

}  // namespace halfscope
