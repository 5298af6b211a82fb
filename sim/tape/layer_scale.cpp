// Statistics of a layer, in double and in order: the same for any number of threads.
#include "sim/tape/layer_scale.hpp"

#include <algorithm>
#include <cmath>

#include <halfscope/kernel/cast/convert.hpp>

#include "lib/nn/elementwise.hpp"

namespace halfscope {
namespace {

struct Moments {
  double mean = 0, deviation = 0;
};

/// On the host, wherever the array is: a sum in one order, which few layers ask for.
Moments moments_of(const Array& array) {
  if (array.device() != Device::cpu) return moments_of(to_host_floats(array));
  const auto values = array.values();
  double sum = 0, squares = 0;
  for (const float x : values) {
    sum += double{x};
    squares += double{x} * double{x};
  }
  const auto count = static_cast<double>(std::max<std::size_t>(values.size(), 1));
  const double mean = sum / count;
  return {mean, std::sqrt(std::max(0.0, squares / count - mean * mean))};
}

}  // namespace

void rescale(Array& values, double factor) {
  if (factor == 1) return;
  values = to_dtype(std::move(values), DType::f32);
  scale(values.values(), static_cast<float>(factor), values.values());
}

double layer_scale(const Array& gradient, const Array& weight, double carried,
                   const LayerwiseOptions& options) {
  const auto largest = static_cast<double>(largest_magnitude(gradient.view()));
  if (!std::isfinite(largest) || largest == 0) return 1;
  const Moments of_gradient = moments_of(gradient), of_weight = moments_of(weight);
  const std::int64_t in = weight.extent(weight.shape().size() - 2);
  const double chosen = layerwise_scale({.gradient_mean = of_gradient.mean,
                                         .gradient_deviation = of_gradient.deviation,
                                         .gradient_max_abs = largest,
                                         .weight_mean = of_weight.mean,
                                         .weight_deviation = of_weight.deviation,
                                         .weight_max_abs = largest_magnitude(weight.view()),
                                         .fan_in = static_cast<std::int64_t>(weight.size()) / in,
                                         .carried_scale = carried},
                                        options);
  return std::min(chosen, std::ldexp(1.0, std::ilogb(options.largest / largest)));
}

double bring_to_one_scale(const ScaledGradient& a, const ScaledGradient& b, double largest) {
  if (a.scale == b.scale) return a.scale;
  const double low = std::min(a.scale, b.scale);
  const double sum =
      largest_magnitude(a.values.view()) / a.scale + largest_magnitude(b.values.view()) / b.scale;
  double common = std::max(a.scale, b.scale);
  while (common > low && sum * common > largest) common /= 2;
  rescale(a.values, common / a.scale);
  rescale(b.values, common / b.scale);
  return common;
}

}  // namespace halfscope
