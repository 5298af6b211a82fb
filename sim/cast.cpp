// Casting, and telling the trackers.
#include "sim/cast.hpp"

#include <utility>

#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/round.hpp>

namespace halfscope {
namespace {

/// Elements per task of a parallel round: 64 KiB.
constexpr std::int64_t grain = 16384;

void round_in_place(Array& array, const Quantizer& quantizer, const RandomStream& stream) {
  if (quantizer.rounding == Rounding::stochastic) {
    // The stream is indexed by element, so the array is not cut up.
    return round(array.values(), array.values(), quantizer, stream);
  }
  parallel_for_ranges(
      static_cast<std::int64_t>(array.size()), grain, [&](std::int64_t first, std::int64_t count) {
        const auto values =
            array.values().subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
        round(values, values, quantizer);
      });
}

}  // namespace

Site Caster::site(std::string_view tensor, Role role) const {
  const bool scaled = role == Role::activation_gradient || role == Role::weight_gradient;
  return {context_.step, tensor, role, scaled ? context_.loss_scale : 1.0};
}

void Caster::cast(Array& array, std::string_view tensor, Role role) {
  const Quantizer& quantizer = policy_.quantizer(role);
  const RandomStream stream{seed_, static_cast<std::uint32_t>(context_.step),
                            site_hash(tensor.data(), tensor.size()) + static_cast<std::uint32_t>(role)};
  if (!observed()) {
    if (!quantizer.is_identity()) round_in_place(array, quantizer, stream);
    return;
  }
  const Array before = array.clone();
  if (!quantizer.is_identity()) round_in_place(array, quantizer, stream);
  const CastEvent event{site(tensor, role), quantizer, before.values(), std::as_const(array).values()};
  for (const auto& tracker : *trackers_) tracker->on_cast(event, *context_.observations);
}

void Caster::observe_update(std::string_view tensor, const Array& before, const Array& update) {
  if (!observed()) return;
  // With an FP32 master copy the question is what a copy in the forward weights' format would have lost; an
  // FP32 run is asked what FP16 would have.
  Quantizer stored = policy_.quantizer(Role::master_weight);
  if (stored.is_identity()) stored = policy_.quantizer(Role::weight);
  if (stored.is_identity()) stored = {.format = fp16};
  const UpdateEvent event{site(tensor, Role::master_weight), stored, before.values(), update.values()};
  for (const auto& tracker : *trackers_) tracker->on_update(event, *context_.observations);
}

void Caster::observe_reduction(std::string_view tensor, const ReductionCounters& counters) {
  if (!observed()) return;
  const ReductionEvent event{site(tensor, Role::activation), counters};
  for (const auto& tracker : *trackers_) tracker->on_reduction(event, *context_.observations);
}

}  // namespace halfscope
