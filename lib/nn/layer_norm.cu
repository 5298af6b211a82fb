// The element-wise parts of layer normalisation on the device, one thread per element.
#include <halfscope/kernel/detail/launch.cuh>

#include "lib/nn/layer_norm.hpp"
#include "lib/nn/norm_element.hpp"

namespace halfscope::cuda {
namespace {

std::int64_t count_of(std::span<const float> values) {
  return static_cast<std::int64_t>(values.size());
}

/// Elements of a row, where there are rows.
std::int64_t features_of(std::span<const float> x, std::span<const float> rows) {
  return rows.empty() ? 1 : count_of(x) / count_of(rows);
}

struct NormaliseRows {
  const float* mean;
  const float* inverse_deviation;
  std::int64_t features;
  float* x;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    x[i] = norm_element::normalised(x[i], mean[i / features], inverse_deviation[i / features]);
  }
};

struct ScaleAndShift {
  const float* normalised;
  const float* gamma;
  const float* beta;
  std::int64_t features;
  float* y;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    y[i] = norm_element::scaled(normalised[i], gamma[i % features], beta[i % features]);
  }
};

struct ScaleColumns {
  const float* factor;
  std::int64_t columns;
  float* y;
  HALFSCOPE_HD void operator()(std::int64_t i) const { y[i] *= factor[i % columns]; }
};

struct NormaliseRowsGradient {
  const float* normalised;
  const float* inverse_deviation;
  const float* mean;
  const float* mean_normalised;
  std::int64_t features;
  float* gradient;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int64_t r = i / features;
    gradient[i] = norm_element::gradient(gradient[i] - mean[r], normalised[i] * mean_normalised[r],
                                         inverse_deviation[r]);
  }
};

}  // namespace

void normalise_rows(std::span<const float> mean, std::span<const float> inverse_deviation,
                    std::span<float> x) {
  for_each(count_of(x),
           NormaliseRows{on_device(mean), on_device(inverse_deviation), features_of(x, mean), on_device(x)},
           "normalise_rows");
}

void scale_and_shift(std::span<const float> normalised, std::span<const float> gamma,
                     std::span<const float> beta, std::span<float> y) {
  for_each(
      count_of(y),
      ScaleAndShift{on_device(normalised), on_device(gamma), on_device(beta), count_of(gamma), on_device(y)},
      "scale_and_shift");
}

void scale_columns(std::span<const float> factor, std::span<float> y) {
  for_each(count_of(y), ScaleColumns{on_device(factor), count_of(factor), on_device(y)}, "scale_columns");
}

void normalise_rows_gradient(const RowStatistics& s, std::span<float> gradient) {
  for_each(
      count_of(gradient),
      NormaliseRowsGradient{on_device(s.normalised), on_device(s.inverse_deviation), on_device(s.mean),
                            on_device(s.mean_normalised), features_of(gradient, s.mean), on_device(gradient)},
      "normalise_rows_gradient");
}

}  // namespace halfscope::cuda
