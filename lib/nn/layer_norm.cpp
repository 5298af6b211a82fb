// Checks sizes and loops over the rows.
#include <string>

#include "lib/nn/layer_norm.hpp"
#include "lib/nn/norm_element.hpp"

namespace halfscope {
namespace {

/// Throws unless `elements` are whole rows of `columns`.
void check_rows(const char* operation, std::size_t elements, std::size_t columns) {
  if (columns != 0 ? elements % columns == 0 : elements == 0) return;
  throw InvalidArgument(std::string(operation) + ": " + std::to_string(elements) +
                        " elements are no whole rows of " + std::to_string(columns));
}

void check_equal(const char* operation, std::size_t a, std::size_t b) {
  if (a == b) return;
  throw InvalidArgument(std::string(operation) + ": sizes " + std::to_string(a) + " and " +
                        std::to_string(b) + " differ");
}

}  // namespace

void normalise_rows(std::span<const float> mean, std::span<const float> inverse_deviation,
                    std::span<float> x) {
  check_equal("normalise_rows", mean.size(), inverse_deviation.size());
  check_rows("normalise_rows", x.size(), mean.size());
  if (active_device() == Device::cuda) return cuda::normalise_rows(mean, inverse_deviation, x);
  if (mean.empty()) return;
  const std::size_t features = x.size() / mean.size();
  float* value = x.data();
  for (std::size_t r = 0; r < mean.size(); ++r) {
    const float center = mean[r], deviation = inverse_deviation[r];
    for (std::size_t i = 0; i < features; ++i, ++value)
      *value = norm_element::normalised(*value, center, deviation);
  }
}

void scale_and_shift(std::span<const float> normalised, std::span<const float> gamma,
                     std::span<const float> beta, std::span<float> y) {
  check_equal("scale_and_shift", gamma.size(), beta.size());
  check_equal("scale_and_shift", normalised.size(), y.size());
  check_rows("scale_and_shift", y.size(), gamma.size());
  if (active_device() == Device::cuda) return cuda::scale_and_shift(normalised, gamma, beta, y);
  for (std::size_t row = 0; row < y.size(); row += gamma.size()) {
    for (std::size_t i = 0; i < gamma.size(); ++i)
      y[row + i] = norm_element::scaled(normalised[row + i], gamma[i], beta[i]);
  }
}

void scale_columns(std::span<const float> factor, std::span<float> y) {
  check_rows("scale_columns", y.size(), factor.size());
  if (active_device() == Device::cuda) return cuda::scale_columns(factor, y);
  for (std::size_t row = 0; row < y.size(); row += factor.size()) {
    for (std::size_t i = 0; i < factor.size(); ++i) y[row + i] *= factor[i];
  }
}

void normalise_rows_gradient(const RowStatistics& s, std::span<float> gradient) {
  check_equal("normalise_rows_gradient", s.normalised.size(), gradient.size());
  check_equal("normalise_rows_gradient", s.mean.size(), s.inverse_deviation.size());
  check_equal("normalise_rows_gradient", s.mean.size(), s.mean_normalised.size());
  check_rows("normalise_rows_gradient", gradient.size(), s.mean.size());
  if (active_device() == Device::cuda) return cuda::normalise_rows_gradient(s, gradient);
  if (s.mean.empty()) return;
  const std::size_t features = gradient.size() / s.mean.size();
  for (std::size_t r = 0, first = 0; r < s.mean.size(); ++r, first += features) {
    const float deviation = s.inverse_deviation[r], mean = s.mean[r], mean_normalised = s.mean_normalised[r];
    for (std::size_t i = first; i < first + features; ++i) {
      gradient[i] = norm_element::gradient(gradient[i] - mean, s.normalised[i] * mean_normalised, deviation);
    }
  }
}

}  // namespace halfscope
