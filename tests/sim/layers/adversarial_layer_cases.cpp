// The activations and the loss of generators and their discriminators, beside naive loops.
#include <cmath>

#include "sim/layers/activations.hpp"
#include "sim/layers/losses.hpp"
#include "tests/sim/layers/layer_case.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::adversarial_layer_cases {
namespace {

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

/// The loss takes numbers of a sigmoid, which makes them of the input.
LayerCase cross_entropy(const char* name, float lowest_target, float highest_target) {
  const auto targets = [=] { return uniform_array({3, 5}, lowest_target, highest_target, 5); };
  return {name,
          {3, 5},
          [](ParameterStore&) {},
          [=](Tape& t, TensorRef x, ParameterStore&) {
            return binary_cross_entropy(t, "y", sigmoid(t, "p", x), targets());
          },
          [=](const ParameterStore& s) {
            double sum = 0;
            const Array of = targets();
            for (std::size_t i = 0; i < 15; ++i) {
              const double p = logistic(static_cast<double>(master(s, 0)[i])), t = static_cast<double>(of[i]);
              sum -= t * std::log(p) + (1 - t) * std::log(1 - p);
            }
            return std::vector{sum / 15};
          }};
}

std::vector<LayerCase> cases() {
  return {{"leaky_relu",
           {3, 7},
           [](ParameterStore&) {},
           [](Tape& t, TensorRef x, ParameterStore&) { return leaky_relu(t, "y", x, 0.2f); },
           [](const ParameterStore& s) {
             std::vector<double> y;
             for (const float x : master(s, 0).values())
               y.push_back(static_cast<double>(x) * (x > 0 ? 1 : 0.2));
             return y;
           }},
          {"sigmoid",
           {3, 7},
           [](ParameterStore&) {},
           [](Tape& t, TensorRef x, ParameterStore&) { return sigmoid(t, "y", x); },
           [](const ParameterStore& s) {
             std::vector<double> y;
             for (const float x : master(s, 0).values()) y.push_back(logistic(static_cast<double>(x)));
             return y;
           }},
          cross_entropy("binary_cross_entropy", 0, 1),
          cross_entropy("binary_cross_entropy of ones", 1, 1),
          cross_entropy("binary_cross_entropy of zeros", 0, 0)};
}
const LayerCases registered(cases);

}  // namespace
}  // namespace halfscope::adversarial_layer_cases
