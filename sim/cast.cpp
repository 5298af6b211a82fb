// Casting: scales, random bits and rounding.
#include "sim/cast.hpp"

#include <utility>

#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/cast/round.hpp>

#include "lib/nn/elementwise.hpp"

namespace halfscope {
Site Caster::site(std::string_view tensor, Role role, std::int32_t part) const {
  const bool scaled = role == Role::activation_gradient || role == Role::weight_gradient;
  return {.step = context_.step,
          .tensor = tensor,
          .role = role,
          .scale = scaled ? context_.loss_scale * carried_scale_ : 1.0,
          .part = part,
          .micro_batch = micro_batch_.value_or(whole_step),
          .pass = context_.pass};
}

RandomStream Caster::random_stream(std::string_view name) const {
  const std::uint32_t hash = site_hash(name.data(), name.size());
  return {seed_, static_cast<std::uint32_t>(context_.step),
          micro_batch_ ? site_hash_on(hash, *micro_batch_) : hash};
}

RandomStream Caster::cast_stream(const Site& where) const {
  return {seed_, static_cast<std::uint32_t>(context_.step), stream_site(where)};
}

DType Caster::storage(Role role) const {
  const bool in_the_network = role != Role::master_weight && role != Role::optimizer_state;
  return context_.execution == Execution::native && in_the_network ? native_storage(policy().quantizer(role))
                                                                   : DType::f32;
}

void Caster::cast(Array& array, std::string_view tensor, Role role) {
  array = to_dtype(std::move(array), DType::f32);
  const DType native = storage(role);
  if (native == DType::f32 || events_.watched(role) != CastDetail::none) {
    cast(array.values(), tensor, role);
    array = to_dtype(std::move(array), native);
    return;
  }
  Array rounded(array.shape(), native);
  round_into(array.values(), rounded.view(), policy().quantizer(role), cast_stream(site(tensor, role)));
  array = std::move(rounded);
}

void Caster::cast(std::span<float> values, std::string_view tensor, Role role, std::int32_t part) {
  const Quantizer& quantizer = policy().quantizer(role);
  const CastDetail detail = events_.watched(role);
  if (detail == CastDetail::none && quantizer.is_identity()) return;
  const Site where = site(tensor, role, part);
  const RandomStream stream = cast_stream(where);
  if (detail == CastDetail::none) return round_in_threads(values, quantizer, stream);
  CastObservers observers = events_.observers(role);
  if (observers.weight_gradients && carried_scale_ != 1) {
    // They are added up as the backward pass will hand them out, without what they carry.
    Array unscaled({std::ssize(values)});
    scale(values, static_cast<float>(1 / carried_scale_), unscaled.values());
    events_.cast(unscaled.values(), {where, {}, detail, {}, {.weight_gradients = true}});
    observers.weight_gradients = false;
  }
  events_.cast(values, {where, quantizer, detail, stream, observers});
}

Quantizer Caster::weight_format() const {
  // With an FP32 master copy the question is what a copy in the forward weights' format would have lost; an
  // FP32 run is asked what FP16 would have.
  Quantizer stored = policy_.quantizer(Role::master_weight);
  if (stored.is_identity()) stored = policy_.quantizer(Role::weight);
  return stored.is_identity() ? Quantizer{.format = fp16} : stored;
}

}  // namespace halfscope
