// The layer-wise scale against an independent calculation, and against what it promises.
#include <halfscope/core/random.hpp>
#include <halfscope/scaling/layerwise_scale.hpp>

#include <cmath>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::layerwise_test {
namespace {

/// P(|N(0, 1)| < x) by Simpson's rule.
double normal_within(double x) {
  constexpr int pieces = 2000;
  const double h = x / pieces;
  double sum = 0;
  for (int i = 0; i <= pieces; ++i) {
    const double weight = i == 0 || i == pieces ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * std::exp(-0.5 * (i * h) * (i * h));
  }
  return 2 * sum * h / 3 / std::sqrt(2 * 3.14159265358979323846);
}

double deviation_of(const LayerStatistics& layer) {
  const double g =
      layer.gradient_mean * layer.gradient_mean + layer.gradient_deviation * layer.gradient_deviation;
  const double w = layer.weight_mean * layer.weight_mean + layer.weight_deviation * layer.weight_deviation;
  return std::sqrt(g * w * static_cast<double>(layer.fan_in) / 2);
}

/// By trying the powers of two: the least at which few enough are lost, held by the bounds.
double by_trying(const LayerStatistics& layer, const LayerwiseOptions& options) {
  const auto allowed = [&](double scale) {
    return scale <= options.scale_bound && scale * layer.carried_scale <= options.carried_bound &&
           scale * static_cast<double>(layer.fan_in) * layer.gradient_max_abs * layer.weight_max_abs <=
               options.largest;
  };
  double scale = 1;
  while (scale > 0x1p-40 && !allowed(scale)) scale /= 2;
  // The rule rounds the scale it needs down to a power of two.
  while (allowed(2 * scale) &&
         normal_within(options.smallest / (2 * scale) / deviation_of(layer)) > options.underflow_share) {
    scale *= 2;
  }
  return scale;
}

TEST_CASE("the layer-wise scale equals a search over powers of two", "[scaling][layerwise]") {
  const RandomStream random{.seed = 11};
  int above_one = 0, bounded = 0;
  for (std::uint64_t i = 0; i < 500; ++i) {
    const auto uniform = [&](std::uint64_t j) { return static_cast<double>(random.uniform(8 * i + j)); };
    LayerStatistics layer{.gradient_mean = std::exp2(-30 + 20 * uniform(0)),
                          .gradient_deviation = std::exp2(-28 + 20 * uniform(1)),
                          .weight_mean = 0.01 * uniform(2),
                          .weight_deviation = 0.01 + 0.1 * uniform(3),
                          .weight_max_abs = 1,
                          .fan_in = 1 + static_cast<std::int64_t>(1000 * uniform(4)),
                          .carried_scale = std::exp2(std::floor(12 * uniform(5)))};
    layer.gradient_max_abs = 8 * layer.gradient_deviation + layer.gradient_mean;
    const LayerwiseOptions options{
        .underflow_share = i % 2 == 0 ? 1e-3 : 0.2, .scale_bound = 0x1p10, .carried_bound = 0x1p14};
    INFO("case " << i);
    const double scale = layerwise_scale(layer, options);
    CHECK(scale == by_trying(layer, options));
    above_one += scale > 1 ? 1 : 0;
    bounded += scale == options.scale_bound || scale * layer.carried_scale == options.carried_bound ? 1 : 0;
  }
  CHECK(above_one > 100);
  CHECK(bounded > 20);
}

TEST_CASE("the layer-wise scale of nothing is 1, and what would overflow is scaled down",
          "[scaling][layerwise]") {
  CHECK(layerwise_scale({}) == 1);
  const LayerStatistics large{.gradient_deviation = 100,
                              .gradient_max_abs = 1000,
                              .weight_deviation = 1,
                              .weight_max_abs = 4,
                              .fan_in = 64};
  CHECK(layerwise_scale(large) == 0.25);  // 65504 / 64 / 4000 = 0.256
  CHECK_THROWS_AS(layerwise_scale(large, {.underflow_share = 0}), InvalidArgument);
}

}  // namespace
}  // namespace halfscope::layerwise_test
