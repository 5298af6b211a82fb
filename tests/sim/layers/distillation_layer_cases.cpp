// The losses of a distillation beside naive loops in double precision.
#include <cmath>

#include "sim/layers/losses.hpp"
#include "tests/sim/layers/layer_case.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::distillation_layer_cases {
namespace {

constexpr std::size_t rows = 3, columns = 5;

Array teacher() {
  return uniform_array({rows, columns}, -4, 4, 7);
}

/// softmax(row / temperature).
std::vector<double> softened(const float* row, double temperature) {
  std::vector<double> p;
  double sum = 0;
  for (std::size_t c = 0; c < columns; ++c)
    sum += p.emplace_back(std::exp(static_cast<double>(row[c]) / temperature));
  for (double& share : p) share /= sum;
  return p;
}

double divergence(const Array& x, const Array& targets, double temperature) {
  double sum = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    const auto p = softened(targets.data() + r * columns, temperature),
               q = softened(x.data() + r * columns, temperature);
    for (std::size_t c = 0; c < columns; ++c) sum += p[c] * std::log(p[c] / q[c]);
  }
  return temperature * temperature * sum / static_cast<double>(rows);
}

double cosine_distance(const Array& x, const Array& targets) {
  double sum = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    double product = 0, of_x = 1e-12, of_target = 1e-12;
    for (std::size_t i = r * columns; i < (r + 1) * columns; ++i) {
      const auto a = static_cast<double>(x[i]), b = static_cast<double>(targets[i]);
      product += a * b;
      of_x += a * a;
      of_target += b * b;
    }
    sum += 1 - product / std::sqrt(of_x * of_target);
  }
  return sum / static_cast<double>(rows);
}

LayerCase divergence_case(const char* name, float temperature) {
  return {name,
          {rows, columns},
          [](ParameterStore&) {},
          [=](Tape& t, TensorRef x, ParameterStore&) {
            return distillation_loss(t, "y", x, teacher(), temperature);
          },
          [=](const ParameterStore& s) {
            return std::vector{divergence(master(s, 0), teacher(), static_cast<double>(temperature))};
          }};
}

std::vector<LayerCase> cases() {
  return {divergence_case("distillation_loss", 2),
          divergence_case("distillation_loss at temperature 0.7", 0.7f),
          {"cosine_embedding_loss",
           {rows, columns},
           [](ParameterStore&) {},
           [](Tape& t, TensorRef x, ParameterStore&) { return cosine_embedding_loss(t, "y", x, teacher()); },
           [](const ParameterStore& s) { return std::vector{cosine_distance(master(s, 0), teacher())}; }}};
}

const LayerCases registered(cases);

}  // namespace
}  // namespace halfscope::distillation_layer_cases
