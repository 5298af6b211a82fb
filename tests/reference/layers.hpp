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

/// Geometry of a convolution; a padding below 0 is half the kernel's extent.
struct ConvolutionGeometry {
  std::int64_t stride = 1;
  std::int64_t row_padding = -1, column_padding = -1;
  std::int64_t groups = 1;
  std::int64_t column_stride = 0;  ///< 0: as of rows

  [[nodiscard]] std::int64_t across() const { return column_stride == 0 ? stride : column_stride; }
};

/// Zero border; x (batch, height, width, in), weight (rows, columns, in / groups, out), bias (out) or null.
inline std::vector<double> conv2d(const Array& x, const Array& weight, const Array* bias = nullptr,
                                  const ConvolutionGeometry& geometry = {}) {
  const std::int64_t height = x.extent(1), width = x.extent(2), in = x.extent(3), rows = weight.extent(0),
                     columns = weight.extent(1), group_in = weight.extent(2), out = weight.extent(3);
  const std::int64_t above = geometry.row_padding < 0 ? rows / 2 : geometry.row_padding,
                     left = geometry.column_padding < 0 ? columns / 2 : geometry.column_padding;
  const auto pixel = [&](std::int64_t n, std::int64_t r, std::int64_t c, std::int64_t i) {
    if (r < 0 || r >= height || c < 0 || c >= width) return 0.0;
    return static_cast<double>(x[static_cast<std::size_t>(((n * height + r) * width + c) * in + i)]);
  };
  std::vector<double> y;
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    for (std::int64_t r = -above; r + rows <= height + above; r += geometry.stride) {
      for (std::int64_t c = -left; c + columns <= width + left; c += geometry.across()) {
        for (std::int64_t o = 0; o < out; ++o) {
          const std::int64_t first_in = o / (out / geometry.groups) * group_in;
          double sum = bias == nullptr ? 0 : static_cast<double>((*bias)[static_cast<std::size_t>(o)]);
          for (std::int64_t kr = 0; kr < rows; ++kr)
            for (std::int64_t kc = 0; kc < columns; ++kc)
              for (std::int64_t i = 0; i < group_in; ++i)
                sum += pixel(n, r + kr, c + kc, first_in + i) *
                       static_cast<double>(
                           weight[static_cast<std::size_t>(((kr * columns + kc) * group_in + i) * out + o)]);
          y.push_back(sum);
        }
      }
    }
  }
  return y;
}

/// Each number of x (batch, height, width, in) spread over a kernel's place in y, with the weight (rows,
/// columns, out, in) and bias (out) or null; the padding is that of the geometry, whose groups are one.
inline std::vector<double> conv_transpose2d(const Array& x, const Array& weight, const Array* bias,
                                            const ConvolutionGeometry& geometry) {
  const std::int64_t height = x.extent(1), width = x.extent(2), in = x.extent(3), rows = weight.extent(0),
                     columns = weight.extent(1), out = weight.extent(2);
  const std::int64_t above = geometry.row_padding, left = geometry.column_padding;
  const std::int64_t down = (height - 1) * geometry.stride - 2 * above + rows,
                     across = (width - 1) * geometry.across() - 2 * left + columns;
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  std::vector<double> y(at(x.extent(0) * down * across * out));
  for (std::size_t i = 0; bias != nullptr && i < y.size(); ++i)
    y[i] = static_cast<double>((*bias)[i % at(out)]);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(x.size()); ++i) {
    const std::int64_t pixel = i / in, column = pixel % width, row = pixel / width % height;
    for (std::int64_t kr = 0; kr < rows; ++kr) {
      for (std::int64_t kc = 0; kc < columns; ++kc) {
        const std::int64_t r = row * geometry.stride - above + kr, c = column * geometry.across() - left + kc;
        if (r < 0 || r >= down || c < 0 || c >= across) continue;
        for (std::int64_t o = 0; o < out; ++o) {
          y[at(((pixel / width / height * down + r) * across + c) * out + o)] +=
              static_cast<double>(x[at(i)]) *
              static_cast<double>(weight[at(((kr * columns + kc) * out + o) * in + i % in)]);
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

/// Mean over rows of -sum target log softmax, where the target is 1 - smoothing of the label and smoothing of
/// a uniform distribution.
inline double softmax_cross_entropy(const Array& logits, const std::vector<std::int32_t>& labels,
                                    double smoothing = 0) {
  const std::size_t classes = logits.size() / labels.size();
  double loss = 0;
  for (std::size_t r = 0; r < labels.size(); ++r) {
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(logits[r * classes + c]));
    for (std::size_t c = 0; c < classes; ++c) {
      const double uniform = smoothing / static_cast<double>(classes);
      const double target = uniform + (c == static_cast<std::size_t>(labels[r]) ? 1 - smoothing : 0);
      loss += target * (std::log(sum) - static_cast<double>(logits[r * classes + c]));
    }
  }
  return loss / static_cast<double>(labels.size());
}

}  // namespace halfscope::reference
