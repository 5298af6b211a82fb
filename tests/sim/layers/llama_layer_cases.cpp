// The layers of a llama, one line per layer, beside naive loops in double precision; parameter 0 is the
// input.
#include <cmath>

#include "sim/layers/layers.hpp"
#include "tests/sim/layers/layer_case.hpp"
#include "tests/sim/tape/leaf.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::llama_layer_cases {
namespace {

constexpr std::size_t rows = 6, features = 5, batch = 2, time = 3, channels = 4;

std::vector<double> normalised(const ParameterStore& s, double epsilon) {
  std::vector<double> y;
  for (std::size_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (std::size_t c = 0; c < features; ++c)
      squares += std::pow(static_cast<double>(master(s, 0)[r * features + c]), 2);
    const double root = std::sqrt(squares / features + epsilon);
    for (std::size_t c = 0; c < features; ++c) {
      y.push_back(static_cast<double>(master(s, 1)[c]) * static_cast<double>(master(s, 0)[r * features + c]) /
                  root);
    }
  }
  return y;
}

/// Pairs (c, c + channels / 2) as complex numbers times exp(i t base^(-2 c / channels)).
std::vector<double> turned(const Array& x, double base) {
  std::vector<double> y(x.size());
  for (std::size_t row = 0; row < batch * time; ++row) {
    const auto position = static_cast<double>(row % time);
    for (std::size_t pair = 0; pair < channels / 2; ++pair) {
      const std::size_t at = row * channels + pair, beside = at + channels / 2;
      const double turn = position * std::pow(base, -2.0 * static_cast<double>(pair) / channels);
      const auto a = static_cast<double>(x[at]), b = static_cast<double>(x[beside]);
      y[at] = a * std::cos(turn) - b * std::sin(turn);
      y[beside] = b * std::cos(turn) + a * std::sin(turn);
    }
  }
  return y;
}

std::vector<LayerCase> cases() {
  constexpr std::int64_t in = 4, out = 3;
  return {
      {"rms_norm",
       {2, 3, features},
       [](ParameterStore& s) { s.add("gamma", uniform_array({features}, 0.5f, 1.5f, 2)); },
       [](Tape& t, TensorRef x, ParameterStore& s) {
         return rms_norm(t, "y", x, {.gamma = parameter(s, 1), .epsilon = 0.25f});
       },
       [](const ParameterStore& s) { return normalised(s, 0.25); }},
      {"silu",
       {3, 7},
       [](ParameterStore&) {},
       [](Tape& t, TensorRef x, ParameterStore&) { return silu(t, "y", x); },
       [](const ParameterStore& s) {
         std::vector<double> y;
         for (const float x : master(s, 0).values())
           y.push_back(static_cast<double>(x) / (1 + std::exp(-static_cast<double>(x))));
         return y;
       }},
      {"multiply",
       {3, 7},
       [](ParameterStore& s) {
         s.add("b", uniform_array({3, 7}, -1, 1, 2));
       },
       [](Tape& t, TensorRef x, ParameterStore& s) { return multiply(t, "y", x, leaf(t, parameter(s, 1))); },
       [](const ParameterStore& s) {
         std::vector<double> y;
         for (std::size_t i = 0; i < master(s, 0).size(); ++i)
           y.push_back(static_cast<double>(master(s, 0)[i]) * static_cast<double>(master(s, 1)[i]));
         return y;
       }},
      {"rotary",
       {batch, time, channels},
       [](ParameterStore&) {},
       [](Tape& t, TensorRef x, ParameterStore&) { return rotary(t, "y", x, 100); },
       [](const ParameterStore& s) { return turned(master(s, 0), 100); }},
      {"linear without a bias",
       {5, in},
       [](ParameterStore& s) {
         s.add("weight", uniform_array({in, out}, -1, 1, 2));
       },
       [](Tape& t, TensorRef x, ParameterStore& s) { return linear(t, "y", x, parameter(s, 1)); },
       [](const ParameterStore& s) {
         std::vector<double> y;
         for (std::size_t r = 0; r < 5; ++r) {
           for (std::size_t o = 0; o < out; ++o) {
             double sum = 0;
             for (std::size_t i = 0; i < in; ++i)
               sum += static_cast<double>(master(s, 0)[r * in + i]) *
                      static_cast<double>(master(s, 1)[i * out + o]);
             y.push_back(sum);
           }
         }
         return y;
       }},
  };
}
const LayerCases registered(cases);

}  // namespace
}  // namespace halfscope::llama_layer_cases
