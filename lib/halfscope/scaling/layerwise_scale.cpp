// The rule of the layer-wise loss scale.
#include <halfscope/scaling/layerwise_scale.hpp>

#include <algorithm>
#include <cmath>

#include <halfscope/core/error.hpp>

namespace halfscope {
namespace {

/// The x with erf(x) = y, y in (0, 0.5]. erf is concave here, so Newton's steps from 0 rise to it and stop.
double inverse_erf(double y) {
  constexpr double half_root_pi = 0.88622692545275801365;
  double x = 0;
  for (double next = half_root_pi * y; next > x;) {
    x = next;
    next = x + (y - std::erf(x)) * half_root_pi * std::exp(x * x);
  }
  return x;
}

double second_moment(double mean, double deviation) {
  return mean * mean + deviation * deviation;
}

}  // namespace

double layerwise_scale(const LayerStatistics& layer, const LayerwiseOptions& options) {
  if (!(options.underflow_share > 0 && options.underflow_share <= 0.5)) {
    throw InvalidArgument("underflow_share: give a share above 0, at most 0.5");
  }
  const auto fan_in = static_cast<double>(layer.fan_in);
  const double largest_product = layer.gradient_max_abs * layer.weight_max_abs;
  const double product_moment = second_moment(layer.gradient_mean, layer.gradient_deviation) *
                                second_moment(layer.weight_mean, layer.weight_deviation);
  // Half of the products: the other half is behind a ReLU.
  const double deviation = std::sqrt(product_moment * 0.5 * fan_in);
  if (largest_product == 0 || deviation == 0) return 1;
  const double needed =
      options.smallest / (std::sqrt(2.0) * inverse_erf(options.underflow_share) * deviation);
  const double bound = std::min({options.largest / fan_in / largest_product,
                                 options.carried_bound / layer.carried_scale, options.scale_bound});
  const double scale = std::min(std::max(needed, 1.0), bound);
  return std::ldexp(1.0, std::ilogb(scale));
}

}  // namespace halfscope
