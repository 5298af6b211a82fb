// Pooling over any windows and local response normalisation, and naive loops that say what each should give.
#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/layers/layers.hpp"
#include "tests/sim/layers/layer_case.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::pooling_layer_cases {
namespace {

void nothing(ParameterStore& /*store*/) {}

/// A window as a naive loop sees it; each case gives the number of windows by hand.
struct NaivePool {
  std::int64_t down, across;
  PoolWindow window;
  bool is_maximum = true;
  AverageOver over = AverageOver::window;
};

double pooled(const Array& x, const NaivePool& pool, std::int64_t n, std::int64_t r, std::int64_t c,
              std::int64_t k) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0, inside = 0;
  for (std::int64_t i = 0; i < pool.window.size; ++i) {
    for (std::int64_t j = 0; j < pool.window.size; ++j) {
      const std::int64_t row = r * pool.window.stride + i - pool.window.padding,
                         column = c * pool.window.stride + j - pool.window.padding;
      if (row < 0 || column < 0 || row >= x.extent(1) || column >= x.extent(2)) continue;
      const std::int64_t at = ((n * x.extent(1) + row) * x.extent(2) + column) * x.extent(3) + k;
      const auto value = static_cast<double>(x[static_cast<std::size_t>(at)]);
      largest = std::max(largest, value);
      sum += value;
      inside += 1;
    }
  }
  const auto all = static_cast<double>(pool.window.size * pool.window.size);
  return pool.is_maximum ? largest : sum / (pool.over == AverageOver::window ? all : inside);
}

LayerCase pool_case(std::string name, Shape input, const NaivePool& pool) {
  return {std::move(name), std::move(input), nothing,
          [pool](Tape& t, TensorRef x, ParameterStore&) {
            return pool.is_maximum ? max_pool(t, "y", x, pool.window)
                                   : average_pool(t, "y", x, pool.window, pool.over);
          },
          [pool](const ParameterStore& s) {
            std::vector<double> y;
            const Array& x = master(s, 0);
            for (std::int64_t n = 0; n < x.extent(0); ++n)
              for (std::int64_t r = 0; r < pool.down; ++r)
                for (std::int64_t c = 0; c < pool.across; ++c)
                  for (std::int64_t k = 0; k < x.extent(3); ++k) y.push_back(pooled(x, pool, n, r, c, k));
            return y;
          }};
}

LayerCase response_case(std::string name, Shape input, const LocalResponse& response) {
  return {
      std::move(name), std::move(input), nothing,
      [response](Tape& t, TensorRef x, ParameterStore&) { return local_response_norm(t, "y", x, response); },
      [response](const ParameterStore& s) {
        const Array& x = master(s, 0);
        const std::int64_t channels = x.shape().back(), reach = response.size / 2;
        std::vector<double> y;
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(x.size()); ++i) {
          double sum = 0;
          const std::int64_t c = i % channels;
          for (std::int64_t j = std::max<std::int64_t>(0, c - reach); j < std::min(channels, c + reach + 1);
               ++j) {
            sum += std::pow(static_cast<double>(x[static_cast<std::size_t>(i - c + j)]), 2);
          }
          const double base = static_cast<double>(response.k) + static_cast<double>(response.alpha) * sum;
          y.push_back(static_cast<double>(x[static_cast<std::size_t>(i)]) *
                      std::pow(base, -static_cast<double>(response.beta)));
        }
        return y;
      }};
}

std::vector<LayerCase> cases() {
  constexpr PoolWindow overlapping{.size = 3, .stride = 2};
  constexpr PoolWindow kept{.size = 3, .stride = 2, .partial = PartialWindow::kept};
  constexpr PoolWindow padded{.size = 3, .stride = 2, .padding = 1};
  constexpr PoolWindow pairs{.size = 2, .stride = 2, .partial = PartialWindow::kept};
  constexpr PoolWindow same{.size = 3, .stride = 1, .padding = 1};
  return {
      pool_case("max_pool 3/2", {2, 7, 5, 3}, {3, 2, overlapping}),
      pool_case("max_pool 3/2, the rest dropped", {1, 6, 8, 2}, {2, 3, overlapping}),
      pool_case("max_pool 3/2, the rest kept", {1, 6, 8, 2}, {3, 4, kept}),
      pool_case("max_pool 3/2 of images smaller than the window", {2, 2, 1, 3}, {1, 1, kept}),
      pool_case("max_pool 3/2 with padding", {1, 6, 7, 17}, {3, 4, padded}),
      pool_case("max_pool 3/1 with padding", {1, 3, 4, 2}, {3, 4, same}),
      pool_case("max_pool 2/2, the rest kept", {2, 5, 3, 2}, {3, 2, pairs}),
      pool_case("max_pool 2/2 of even sides", {2, 4, 6, 2}, {2, 3, pairs}),
      pool_case("average_pool 3/1 with padding", {2, 4, 3, 2}, {4, 3, same, false}),
      pool_case("average_pool 3/1 over the image", {1, 4, 3, 17}, {4, 3, same, false, AverageOver::image}),
      pool_case("average_pool 3/2, the rest kept", {1, 6, 5, 2}, {3, 2, kept, false, AverageOver::image}),
      pool_case("average_pool 5/3", {1, 14, 9, 1}, {4, 2, {.size = 5, .stride = 3}, false}),
      response_case("local_response_norm", {2, 2, 2, 7}, {.alpha = 0.5f}),
      response_case("local_response_norm over 3 channels", {3, 4}, {.size = 3, .alpha = 0.3f, .k = 1}),
      response_case("local_response_norm over more channels than there are", {2, 2},
                    {.size = 7, .alpha = 1, .beta = 0.5f, .k = 1})};
}
const LayerCases registered(cases);

}  // namespace
}  // namespace halfscope::pooling_layer_cases
