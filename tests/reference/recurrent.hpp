// Recurrent layers as naive loops in double precision, in PyTorch's conventions.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <halfscope/device/array.hpp>

namespace halfscope::reference {

inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

/// x (time, batch, in); weights (in or state, gates * hidden); biases (gates * hidden). A state has `hidden`
/// numbers, or is those times the projection (hidden, state).
struct Recurrent {
  const Array& x;
  const Array& input_weight;
  const Array& input_bias;
  const Array& hidden_weight;
  const Array& hidden_bias;
  const Array* projection = nullptr;
};

/// Column `column` of a row times a weight, plus the bias.
template <typename Value>
double project(const Value* row, const Array& weight, const Array& bias, std::size_t column) {
  const auto in = static_cast<std::size_t>(weight.extent(0)),
             out = static_cast<std::size_t>(weight.extent(1));
  double sum = static_cast<double>(bias[column]);
  for (std::size_t i = 0; i < in; ++i)
    sum += static_cast<double>(row[i]) * static_cast<double>(weight[i * out + column]);
  return sum;
}

/// (time, batch, state) states; `update(projections of x, of h, h, c)` turns one unit's h and c into the
/// next.
template <typename Update>
std::vector<double> recurrent(const Recurrent& p, std::size_t gates, Update update) {
  const auto time = static_cast<std::size_t>(p.x.extent(0)), batch = static_cast<std::size_t>(p.x.extent(1));
  const auto in = static_cast<std::size_t>(p.x.extent(2));
  const auto hidden = static_cast<std::size_t>(p.hidden_weight.extent(1)) / gates;
  const auto width = static_cast<std::size_t>(p.hidden_weight.extent(0));
  const Array none = Array::zeros({static_cast<std::int64_t>(width)});
  std::vector<double> states(time * batch * width);
  for (std::size_t b = 0; b < batch; ++b) {
    std::vector<double> h(width), c(hidden);
    for (std::size_t t = 0; t < time; ++t) {
      const float* x = p.x.data() + (t * batch + b) * in;
      std::vector<double> next(hidden);
      for (std::size_t j = 0; j < hidden; ++j) {
        std::vector<double> of_x, of_h;
        for (std::size_t g = 0; g < gates; ++g) {
          of_x.push_back(project(x, p.input_weight, p.input_bias, g * hidden + j));
          of_h.push_back(project(h.data(), p.hidden_weight, p.hidden_bias, g * hidden + j));
        }
        next[j] = p.projection == nullptr ? h[j] : 0;
        update(of_x, of_h, next[j], c[j]);
      }
      for (std::size_t j = 0; j < width; ++j)
        h[j] = p.projection == nullptr ? next[j] : project(next.data(), *p.projection, none, j);
      for (std::size_t j = 0; j < width; ++j) states[(t * batch + b) * width + j] = h[j];
    }
  }
  return states;
}

inline std::vector<double> rnn(const Recurrent& p) {
  return recurrent(
      p, 1, [](const auto& x, const auto& h, double& state, double&) { state = std::tanh(x[0] + h[0]); });
}

inline std::vector<double> gru(const Recurrent& p) {
  return recurrent(p, 3, [](const auto& x, const auto& h, double& state, double&) {
    const double r = sigmoid(x[0] + h[0]), z = sigmoid(x[1] + h[1]), n = std::tanh(x[2] + r * h[2]);
    state = (1 - z) * n + z * state;
  });
}

inline std::vector<double> lstm(const Recurrent& p) {
  return recurrent(p, 4, [](const auto& x, const auto& h, double& state, double& cell) {
    const double i = sigmoid(x[0] + h[0]), f = sigmoid(x[1] + h[1]), g = std::tanh(x[2] + h[2]);
    cell = f * cell + i * g;
    state = sigmoid(x[3] + h[3]) * std::tanh(cell);
  });
}

/// Over the last axis.
inline std::vector<double> layer_norm(const Array& x, const Array& gamma, const Array& beta, double epsilon) {
  const std::size_t features = gamma.size();
  std::vector<double> y(x.size());
  for (std::size_t first = 0; first < x.size(); first += features) {
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < features; ++i)
      mean += static_cast<double>(x[first + i]) / static_cast<double>(features);
    for (std::size_t i = 0; i < features; ++i)
      variance += std::pow(static_cast<double>(x[first + i]) - mean, 2) / static_cast<double>(features);
    for (std::size_t i = 0; i < features; ++i) {
      const double normalised = (static_cast<double>(x[first + i]) - mean) / std::sqrt(variance + epsilon);
      y[first + i] = static_cast<double>(gamma[i]) * normalised + static_cast<double>(beta[i]);
    }
  }
  return y;
}

}  // namespace halfscope::reference
