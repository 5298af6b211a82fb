// Layers as naive loops in double precision.
#pragma once

#include <cmath>
#include <vector>

#include <halfscope/device/array.hpp>

namespace halfscope::reference {

/// y (batch, out) = x (batch, in) weight (in, out) + bias.
inline std::vector<double> linear(const Array& x, const Array& weight, const Array& bias) {
  const auto batch = static_cast<std::size_t>(x.extent(0));
  const auto in = static_cast<std::size_t>(weight.extent(0)),
             out = static_cast<std::size_t>(weight.extent(1));
  std::vector<double> y(batch * out);
  for (std::size_t n = 0; n < batch; ++n) {
    for (std::size_t o = 0; o < out; ++o) {
      y[n * out + o] = static_cast<double>(bias[o]);
      for (std::size_t i = 0; i < in; ++i)
        y[n * out + o] += static_cast<double>(x[n * in + i]) * static_cast<double>(weight[i * out + o]);
    }
  }
  return y;
}

/// Zero border; x (batch, height, width, in), weight (size, size, in, out), bias (out) or null.
inline std::vector<double> conv2d(const Array& x, const Array& weight, const Array* bias = nullptr,
                                  std::int64_t stride = 1) {
  const std::int64_t size = weight.extent(0);
  const std::int64_t batch = x.extent(0), height = x.extent(1), width = x.extent(2), in = x.extent(3),
                     out = weight.extent(3);
  std::vector<double> y;
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t r = 0; r < height; r += stride) {
      for (std::int64_t c = 0; c < width; c += stride) {
        for (std::int64_t o = 0; o < out; ++o) {
          double sum = bias == nullptr ? 0 : static_cast<double>((*bias)[static_cast<std::size_t>(o)]);
          for (std::int64_t kr = 0; kr < size; ++kr) {
            for (std::int64_t kc = 0; kc < size; ++kc) {
              const std::int64_t rr = r + kr - size / 2, cc = c + kc - size / 2;
              if (rr < 0 || rr >= height || cc < 0 || cc >= width) continue;
              for (std::int64_t i = 0; i < in; ++i) {
                sum += static_cast<double>(
                           x[static_cast<std::size_t>(((n * height + rr) * width + cc) * in + i)]) *
                       static_cast<double>(
                           weight[static_cast<std::size_t>(((kr * size + kc) * in + i) * out + o)]);
              }
            }
          }
          y.push_back(sum);
        }
      }
    }
  }
  return y;
}

/// Over all axes but the last, with batch statistics.
inline std::vector<double> batch_norm(const Array& x, const Array& gamma, const Array& beta, double epsilon) {
  const auto channels = static_cast<std::size_t>(x.shape().back());
  const std::size_t rows = x.size() / channels;
  std::vector<double> y(x.size());
  for (std::size_t c = 0; c < channels; ++c) {
    double mean = 0, variance = 0;
    for (std::size_t r = 0; r < rows; ++r)
      mean += static_cast<double>(x[r * channels + c]) / static_cast<double>(rows);
    for (std::size_t r = 0; r < rows; ++r)
      variance += std::pow(static_cast<double>(x[r * channels + c]) - mean, 2) / static_cast<double>(rows);
    for (std::size_t r = 0; r < rows; ++r) {
      const double normalised =
          (static_cast<double>(x[r * channels + c]) - mean) / std::sqrt(variance + epsilon);
      y[r * channels + c] = static_cast<double>(gamma[c]) * normalised + static_cast<double>(beta[c]);
    }
  }
  return y;
}

/// Mean over rows of -log softmax[label].
inline double softmax_cross_entropy(const Array& logits, const std::vector<std::int32_t>& labels) {
  const std::size_t classes = logits.size() / labels.size();
  double loss = 0;
  for (std::size_t r = 0; r < labels.size(); ++r) {
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(logits[r * classes + c]));
    loss += std::log(sum) - static_cast<double>(logits[r * classes + static_cast<std::size_t>(labels[r])]);
  }
  return loss / static_cast<double>(labels.size());
}

}  // namespace halfscope::reference
