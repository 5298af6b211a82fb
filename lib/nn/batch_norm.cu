// The element-wise half of batch normalisation on the device.
#include <halfscope/kernel/detail/launch.cuh>

#include "lib/nn/batch_norm.hpp"
#include "lib/nn/norm_element.hpp"

namespace halfscope::cuda {
namespace {

struct InverseDeviations {
  const float* variance;
  float epsilon;
  float* result;
  HALFSCOPE_HD void operator()(std::int64_t c) const {
    result[c] = norm_element::inverse_deviation(variance[c], epsilon);
  }
};

struct UpdateRunning {
  const float* batch;
  float factor, momentum;
  float* running;
  HALFSCOPE_HD void operator()(std::int64_t c) const {
    running[c] = norm_element::moved(running[c], batch[c], factor, momentum);
  }
};

/// Arrays per channel; a null pointer where the operation has no use for it.
struct Channels {
  const float* mean;
  const float* inverse_deviation;
  const float* gamma;
  const float* beta;
  std::int64_t count;
};

Channels channels_of(const ChannelAffine& channel) {
  return {on_device(channel.mean), on_device(channel.inverse_deviation), on_device(channel.gamma),
          on_device(channel.beta), std::ssize(channel.gamma)};
}

struct Normalise {
  ElementReader x;
  Channels channel;
  float* normalised;  ///< null where it is not wanted, as y
  float* y;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int64_t c = i % channel.count;
    const float value = norm_element::normalised(x[i], channel.mean[c], channel.inverse_deviation[c]);
    if (normalised != nullptr) normalised[i] = value;
    if (y != nullptr) y[i] = norm_element::scaled(value, channel.gamma[c], channel.beta[c]);
  }
};

struct NormaliseGradient {
  const float* normalised;
  Channels channel;
  const float* mean;
  const float* mean_normalised;
  float* gradient;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int64_t c = i % channel.count;
    gradient[i] = norm_element::gradient(gradient[i] - mean[c], normalised[i] * mean_normalised[c],
                                         channel.gamma[c] * channel.inverse_deviation[c]);
  }
};

}  // namespace

void inverse_deviations(std::span<const float> variance, float epsilon, std::span<float> result) {
  for_each(std::ssize(result), InverseDeviations{on_device(variance), epsilon, on_device(result)},
           "inverse_deviations");
}

void update_running(const RunningUpdate& update, std::span<float> running) {
  for_each(std::ssize(running),
           UpdateRunning{on_device(update.batch), update.factor, update.momentum, on_device(running)},
           "update_running");
}

void normalise(const ConstArrayView& x, const ChannelAffine& channel, std::span<float> normalised,
               std::span<float> y) {
  for_each(static_cast<std::int64_t>(x.size()),
           Normalise{on_device(x), channels_of(channel), on_device(normalised), on_device(y)}, "normalise");
}

void normalise_gradient(std::span<const float> normalised, const ChannelAffine& channel,
                        const ChannelGradientMeans& means, std::span<float> gradient) {
  for_each(std::ssize(gradient),
           NormaliseGradient{on_device(normalised), channels_of(channel), on_device(means.gradient),
                             on_device(means.gradient_normalised), on_device(gradient)},
           "normalise_gradient");
}

}  // namespace halfscope::cuda
