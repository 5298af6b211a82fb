// How a trainer updates its weights.
#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/cast/convert.hpp>

#include "lib/nn/elementwise.hpp"
#include "sim/optim/clip.hpp"
#include "sim/train/trainer.hpp"

namespace halfscope {
namespace {

bool is_finite(std::uint32_t magnitude) {
  return magnitude < infinity_bits;
}

}  // namespace

bool Trainer::update_weights(const StepScalars& scalars, double loss_scale, double rate) {
  const double clip_norm = settings_.config.clip_norm;
  factors_ = {.unscale = static_cast<float>(1 / loss_scale),
              .clip = clip_norm > 0 ? clip_factor(scalars.norm, clip_norm) : 1};
  optimizer_->begin_step(rate);
  Readback& readback = caster_.events().readback();
  // Before the cast a weight may be infinite that is not after it.
  const bool casts = !caster_.policy().quantizer(Role::master_weight).is_identity();
  const auto uncast = readback.take<std::uint32_t>(1), largest = readback.take<std::uint32_t>(1);
  for (std::size_t i = 0; i < model_.store->parameters.size(); ++i) {
    Parameter& parameter = model_.store->parameters[i];
    ++parameter.version;
    parameter.gradient = to_dtype(std::move(parameter.gradient), DType::f32);
    caster_.update(parameter.name,
                   {.gradient = parameter.gradient.values(),
                    .unscale = factors_.unscale,
                    .clip = factors_.clip,
                    .weights = parameter.master.values(),
                    .largest = readback.device_values(casts ? uncast : largest)},
                   [&](const WeightUpdate& update) { optimizer_->update(i, update); });
    caster_.cast(parameter.master, parameter.name, Role::master_weight);
    if (casts) raise_to_largest(parameter.master.view(), readback.device_values(largest));
  }
  caster_.events().collect();
  return is_finite(readback.values(largest)[0]);
}

bool Trainer::weights_finite() const {
  const DeviceScope scope(settings_.device);
  Readback readback;
  const auto largest = readback.take<std::uint32_t>(1);
  for (const Parameter& parameter : model_.store->parameters)
    raise_to_largest(parameter.master.view(), readback.device_values(largest));
  readback.read();
  return is_finite(readback.values(largest)[0]);
}

}  // namespace halfscope
