// The element-wise loops of batch normalisation, compiled once per instruction set.
#include "lib/nn/batch_norm.hpp"
#include "lib/nn/norm_element.hpp"

namespace halfscope {

template <Isa isa>
void BatchNormLoops<isa>::normalise(const float* x, const ChannelAffine& channel, float* normalised, float* y,
                                    std::int64_t rows) {
  const auto channels = static_cast<std::int64_t>(channel.mean.size());
  const float* mean = channel.mean.data();
  const float* inverse_deviation = channel.inverse_deviation.data();
  const float* gamma = channel.gamma.data();
  const float* beta = channel.beta.data();
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* x_row = x + r * channels;
    float* normalised_row = normalised + r * channels;
    float* y_row = y + r * channels;
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) {
      const float value = norm_element::normalised(x_row[c], mean[c], inverse_deviation[c]);
      normalised_row[c] = value;
      y_row[c] = norm_element::scaled(value, gamma[c], beta[c]);
    }
  }
}

template <Isa isa>
void BatchNormLoops<isa>::normalise_gradient(const float* normalised, const ChannelAffine& channel,
                                             const ChannelGradientMeans& means, float* gradient,
                                             std::int64_t rows) {
  const auto channels = static_cast<std::int64_t>(channel.gamma.size());
  const float* inverse_deviation = channel.inverse_deviation.data();
  const float* gamma = channel.gamma.data();
  const float* mean = means.gradient.data();
  const float* mean_normalised = means.gradient_normalised.data();
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* normalised_row = normalised + r * channels;
    float* gradient_row = gradient + r * channels;
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) {
      gradient_row[c] = norm_element::gradient(
          gradient_row[c] - mean[c], normalised_row[c] * mean_normalised[c], gamma[c] * inverse_deviation[c]);
    }
  }
}

template struct BatchNormLoops<target_isa>;

}  // namespace halfscope
