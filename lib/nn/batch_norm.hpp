// The element-wise half of batch normalisation; the sums are kernel/reduce.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/core/array_view.hpp>
#include <halfscope/device/device.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

/// Per channel: y = gamma * (x - mean) * inverse_deviation + beta, in FP32, multiplied in this order.
struct ChannelAffine {
  std::span<const float> mean;               // (channels)
  std::span<const float> inverse_deviation;  // (channels)
  std::span<const float> gamma;              // (channels)
  std::span<const float> beta;               // (channels)
};

/// result[c] = 1 / sqrt(variance[c] + epsilon), as `rsqrt` rounds it.
void inverse_deviations(std::span<const float> variance, float epsilon, std::span<float> result);

/// running += momentum * (batch * factor - running), channel by channel.
struct RunningUpdate {
  std::span<const float> batch;  // (channels)
  float factor = 1;
  float momentum = 0;
};
void update_running(const RunningUpdate& update, std::span<float> running);

/// normalised = (x - mean) * inverse_deviation and y = gamma * normalised + beta, rows by channels. On the
/// device x may have 16 bits, and either output may be empty: not wanted.
void normalise(const ConstArrayView& x, const ChannelAffine& channel, std::span<float> normalised,
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

/// The same on the device, which the above call where that is the active one.
namespace cuda {
void inverse_deviations(std::span<const float> variance, float epsilon, std::span<float> result);
void update_running(const RunningUpdate& update, std::span<float> running);
void normalise(const ConstArrayView& x, const ChannelAffine& channel, std::span<float> normalised,
               std::span<float> y);
void normalise_gradient(std::span<const float> normalised, const ChannelAffine& channel,
                        const ChannelGradientMeans& means, std::span<float> gradient);
}  // namespace cuda

template <Isa isa>
struct BatchNormLoops {
  static void normalise(const float* x, const ChannelAffine& channel, float* normalised, float* y,
                        std::int64_t rows);
  static void normalise_gradient(const float* normalised, const ChannelAffine& channel,
                                 const ChannelGradientMeans& means, float* gradient, std::int64_t rows);
};

}  // namespace halfscope
