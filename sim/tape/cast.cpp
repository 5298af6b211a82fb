// Casting: scales, random bits and rounding.
#include "sim/tape/cast.hpp"

#include <utility>

#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/cast/round.hpp>

#include "lib/nn/elementwise.hpp"

namespace halfscope {

Site Caster::site(std::string_view tensor, Role role, const CastContext& context, std::int32_t part) const {
  const bool scaled = gradient_roles.contains(role);
  return {.step = context_.step,
          .tensor = tensor,
          .role = role,
          .scale = scaled ? context_.loss_scale * context.carried_scale : 1.0,
          .part = part,
          .micro_batch = context.micro_batch,
          .pass = context.pass};
}

RandomStream Caster::random_stream(std::string_view name, std::int32_t micro_batch) const {
  const std::uint32_t hash = site_hash(name.data(), name.size());
  return {seed_, static_cast<std::uint32_t>(context_.step),
          micro_batch == whole_step ? hash : site_hash_on(hash, micro_batch)};
}

RandomStream Caster::cast_stream(const Site& where) const {
  return {seed_, static_cast<std::uint32_t>(context_.step), stream_site(where)};
}

DType Caster::storage(Role role, Precision precision) const {
  const bool in_the_network = role != Role::master_weight && role != Role::optimizer_state;
  return context_.execution == Execution::native && in_the_network
             ? native_storage(policy(precision).quantizer(role))
             : DType::f32;
}

void Caster::cast(Array& array, std::string_view tensor, Role role, const CastContext& context) {
  array = to_dtype(std::move(array), DType::f32);
  const DType native = storage(role, context.precision);
  if (native == DType::f32 || events_.watched(role) != CastDetail::none) {
    cast(array.values(), tensor, role, context);
    array = to_dtype(std::move(array), native);
    return;
  }
  Array rounded(array.shape(), native);
  round_into(array.values(), rounded.view(), policy(context.precision).quantizer(role),
             cast_stream(site(tensor, role, context)));
  array = std::move(rounded);
}

void Caster::cast(std::span<float> values, std::string_view tensor, Role role, const CastContext& context,
                  std::int32_t part) {
  const Quantizer& quantizer = policy(context.precision).quantizer(role);
  const CastDetail detail = events_.watched(role);
  if (detail == CastDetail::none && quantizer.is_identity()) return;
  const Site where = site(tensor, role, context, part);
  const RandomStream stream = cast_stream(where);
  if (detail == CastDetail::none) return round_in_threads(values, quantizer, stream);
  CastObservers observers = events_.observers(role);
  if (observers.weight_gradients && context.carried_scale != 1) {
    // They are added up as the backward pass will hand them out, without what they carry.
    Array unscaled({std::ssize(values)});
    scale(values, static_cast<float>(1 / context.carried_scale), unscaled.values());
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
