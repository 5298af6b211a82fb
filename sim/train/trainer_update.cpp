// How a trainer updates its weights.
#include <algorithm>
#include <cmath>

#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/cast/convert.hpp>

#include "lib/nn/apply_update.hpp"
#include "lib/nn/elementwise.hpp"
#include "sim/optim/clip.hpp"
#include "sim/train/trainer.hpp"

namespace halfscope {
namespace {

bool is_finite(std::uint32_t magnitude) {
  return magnitude < infinity_bits;
}

}  // namespace

bool Trainer::update_weights(const StepScalars& numbers, double loss_scale, double rate) {
  optimizer_->begin_step(rate);
  for (Parameter& parameter : model_.store->parameters)
    parameter.gradient = to_dtype(std::move(parameter.gradient), DType::f32);
  const auto unscale = static_cast<float>(1 / loss_scale);
  if (caster_.tells_later()) {
    return update_in_one_pass({unscale, settings_.config.clip_norm > 0
                                            ? clip_factor(numbers.norm, settings_.config.clip_norm)
                                            : 1});
  }
  update_in_passes(unscale);
  return weights_finite();
}

void Trainer::update_in_passes(float unscale) {
  factors_ = {};
  for (Parameter& parameter : model_.store->parameters) {
    if (unscale != 1.0f) scale(parameter.gradient.values(), unscale, parameter.gradient.values());
  }
  if (settings_.config.clip_norm > 0) clip_gradients(*model_.store, settings_.config.clip_norm);
  for (std::size_t i = 0; i < model_.store->parameters.size(); ++i) {
    Parameter& parameter = model_.store->parameters[i];
    Array update(parameter.master.shape());
    optimizer_->compute(i, parameter.gradient, update);
    caster_.observe_update(parameter.name, parameter.master, update);
    add(update.values(), parameter.master.values());
    caster_.cast(parameter.master, parameter.name, Role::master_weight);
  }
}

bool Trainer::update_in_one_pass(const GradientFactors& factors) {
  factors_ = factors;
  Readback& readback = caster_.readback();
  // Before the cast a weight may be infinite that is not after it.
  const bool casts = !caster_.policy().quantizer(Role::master_weight).is_identity();
  const auto uncast = readback.take<std::uint32_t>(1), largest = readback.take<std::uint32_t>(1);
  for (std::size_t i = 0; i < model_.store->parameters.size(); ++i) {
    Parameter& parameter = model_.store->parameters[i];
    optimizer_->apply(i, {.gradient = parameter.gradient.values(),
                          .unscale = factors.unscale,
                          .clip = factors.clip,
                          .weights = parameter.master.values(),
                          .largest = readback.device_values(casts ? uncast : largest),
                          .watch = caster_.watch_update(parameter.name, parameter.master.size())});
    caster_.cast(parameter.master, parameter.name, Role::master_weight);
    if (casts) cuda::queue_largest_magnitude(parameter.master.values(), readback.device_values(largest));
  }
  caster_.collect();
  return is_finite(readback.values(largest)[0]);
}

bool Trainer::weights_finite() const {
  const DeviceScope scope(settings_.device);
  const auto& parameters = model_.store->parameters;
  if (settings_.device == Device::cpu) {
    return std::all_of(parameters.begin(), parameters.end(),
                       [](const Parameter& parameter) { return all_finite(parameter.master.values()); });
  }
  Readback readback;
  const auto largest = readback.take<std::uint32_t>(1);
  for (const Parameter& parameter : parameters)
    cuda::queue_largest_magnitude(parameter.master.values(), readback.device_values(largest));
  readback.read();
  return is_finite(readback.values(largest)[0]);
}

}  // namespace halfscope
