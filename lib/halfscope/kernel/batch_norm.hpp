// The element-wise half of batch normalisation; the sums are kernel/reduce.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/kernel/isa.hpp>

namespace halfscope {

/// Per channel: y = gamma * (x - mean) * inverse_deviation + beta, in FP32, multiplied in this order.
struct ChannelAffine {
  std::span<const float> mean;               // (channels)
  std::span<const float> inverse_deviation;  // (channels)
  std::span<const float> gamma;              // (channels)
  std::span<const float> beta;               // (channels)
};

/// normalised = (x - mean) * inverse_deviation and y = gamma * normalised + beta, rows by channels.
void normalise(std::span<const float> x, const ChannelAffine& channel, std::span<float> normalised,
               std::span<float> y);

/// Per channel: the means over rows of dy and of dy * normalised.
struct ChannelGradientMeans {
  std::span<const float> gradient;             // (channels)
  std::span<const float> gradient_normalised;  // (channels)
};

/// gradient (of y, rows by channels) becomes the gradient of x:
/// gamma * inverse_deviation * (dy - mean(dy) - normalised * mean(dy * normalised)).
void normalise_gradient(std::span<const float> normalised, const ChannelAffine& channel,
                        const ChannelGradientMeans& means, std::span<float> gradient);

template <Isa isa>
struct BatchNormLoops {
  static void normalise(const float* x, const ChannelAffine& channel, float* normalised, float* y,
                        std::int64_t rows);
  static void normalise_gradient(const float* normalised, const ChannelAffine& channel,
                                 const ChannelGradientMeans& means, float* gradient, std::int64_t rows);
};

}  // namespace halfscope
