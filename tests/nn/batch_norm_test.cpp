// The gradient of a normalisation whose statistics are not those of its numbers.
#include <cmath>
#include <cstddef>
#include <vector>

#include <halfscope/arithmetic/normal.hpp>

#include "lib/nn/batch_norm.hpp"

#include "tests/support/catch.hpp"

namespace halfscope::batch_norm_test {
namespace {

constexpr std::size_t rows = 4096, channels = 3;
using Columns = std::vector<float>;  // (rows, channels)

Columns drawn(std::uint64_t seed) {
  Columns numbers(rows * channels);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = normal_pair({.seed = seed, .site = 3}, i / 2)[i % 2];
  return numbers;
}

std::vector<double> means_of_products(const Columns& a, const Columns& b) {
  std::vector<double> means(channels);
  for (std::size_t i = 0; i < a.size(); ++i) means[i % channels] += double{a[i]} * double{b[i]} / rows;
  return means;
}

std::vector<float> as_floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

/// With exactly the mean and the mean square that are asked for, in each column.
Columns normalised(double mean, double square) {
  const Columns ones(rows * channels, 1);
  Columns x = drawn(1);
  const std::vector<double> means = means_of_products(x, ones);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] -= static_cast<float>(means[i % channels]);
  const std::vector<double> squares = means_of_products(x, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double spread = std::sqrt((square - mean * mean) / squares[i % channels]);
    x[i] = static_cast<float>(double{x[i]} * spread + mean);
  }
  return x;
}

TEST_CASE("a variance that is k times too small leaves a gradient along the normalised numbers", "[norm]") {
  const Columns ones(rows * channels, 1);
  const std::vector<float> one(channels, 1);
  for (const double mean : {0.0, 0.4, -1.0}) {
    for (const double square : {1.0, 1.25, 2.0, 6.0}) {
      if (square <= mean * mean) continue;
      INFO("mean " << mean << ", mean square " << square);
      const Columns x = normalised(mean, square);
      Columns gradient = drawn(2);
      for (std::size_t i = 0; i < x.size(); ++i) gradient[i] += 0.5f * x[i] + 0.25f;
      const std::vector<double> of_gamma = means_of_products(gradient, x),
                                of_beta = means_of_products(gradient, ones);
      const std::vector<float> gradient_means = as_floats(of_beta), along_means = as_floats(of_gamma);
      normalise_gradient(x, {{}, one, one, {}}, {gradient_means, along_means}, gradient);
      const std::vector<double> along = means_of_products(gradient, x),
                                sum = means_of_products(gradient, ones);
      for (std::size_t c = 0; c < channels; ++c) {
        CHECK(along[c] == Approx((1 - square) * of_gamma[c] - mean * of_beta[c]).margin(1e-4));
        CHECK(sum[c] == Approx(-mean * of_gamma[c]).margin(1e-4));
      }
    }
  }
}

}  // namespace
}  // namespace halfscope::batch_norm_test
