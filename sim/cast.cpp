// Casting, and delivery the trackers.
#include "sim/cast.hpp"

#include <algorithm>
#include <utility>

#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/cast/round.hpp>

#include "lib/nn/elementwise.hpp"

namespace halfscope {
namespace {

/// Elements per task of a parallel round: 64 KiB.
constexpr std::int64_t grain = 16384;

void round_in_place(std::span<float> all, const Quantizer& quantizer, const RandomStream& stream) {
  if (quantizer.rounding == Rounding::stochastic || active_device() == Device::cuda) {
    // The stream is indexed by element, so the array is not cut up; the device does not want it to be.
    return round(all, all, quantizer, stream);
  }
  parallel_for_ranges(
      static_cast<std::int64_t>(all.size()), grain, [&](std::int64_t first, std::int64_t count) {
        const auto values = all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
        round(values, values, quantizer);
      });
}

/// The stream of a cast: the tensor's, and for a part one of its own, since FNV-1a goes on over the part.
std::uint32_t stream_site(const Site& site) {
  std::uint32_t hash = site_hash(site.tensor.data(), site.tensor.size());
  if (site.part != whole_tensor) {
    for (int byte = 0; byte < 4; ++byte) {
      hash = (hash ^ (static_cast<std::uint32_t>(site.part) >> (8 * byte) & 0xFFu)) * 16777619u;
    }
  }
  return hash + static_cast<std::uint32_t>(site.role);
}

}  // namespace

Site Caster::site(std::string_view tensor, Role role, std::int32_t part) const {
  const bool scaled = role == Role::activation_gradient || role == Role::weight_gradient;
  return {context_.step, tensor,       role, scaled ? context_.loss_scale * carried_scale_ : 1.0,
          part,          context_.pass};
}

RandomStream Caster::random_stream(std::string_view name) const {
  return {seed_, static_cast<std::uint32_t>(context_.step), site_hash(name.data(), name.size())};
}

RandomStream Caster::cast_stream(const Site& where) const {
  return {seed_, static_cast<std::uint32_t>(context_.step), stream_site(where)};
}

DType Caster::storage(Role role) const {
  const bool in_the_network = role != Role::master_weight && role != Role::optimizer_state;
  return context_.execution == Execution::native && in_the_network ? native_storage(policy_.quantizer(role))
                                                                   : DType::f32;
}

void Caster::cast(Array& array, std::string_view tensor, Role role) {
  array = to_dtype(std::move(array), DType::f32);
  const DType native = storage(role);
  if (native == DType::f32 || wanted(role) != CastDetail::none) {
    cast(array.values(), tensor, role);
    array = to_dtype(std::move(array), native);
    return;
  }
  Array rounded(array.shape(), native);
  round_into(array.values(), rounded.view(), policy_.quantizer(role), cast_stream(site(tensor, role)));
  array = std::move(rounded);
}

void Caster::cast(std::span<float> values, std::string_view tensor, Role role, std::int32_t part) {
  const Quantizer& quantizer = policy_.quantizer(role);
  const Site where = site(tensor, role, part);
  const CastDetail detail = wanted(role);
  if (detail == CastDetail::none) {
    if (!quantizer.is_identity()) round_in_place(values, quantizer, cast_stream(where));
    return;
  }
  if (tells_later()) return cast_later(values, where, detail);
  const bool carries = adds_up(role) && carried_scale_ != 1;
  if (carries) count_weight_gradients(values);
  const CastCounts counts = round_and_count(values, quantizer, detail, cast_stream(where));
  if (adds_up(role) && !carries) context_.weight_gradients->merge(*counts.before);
  if (observed()) tell_cast({where, quantizer, counts, values});
}

void Caster::tell_cast(const CastEvent& event) const {
  for (const auto& tracker : *trackers_) {
    if (tracker->watches_casts(event.site.role) != CastDetail::none)
      tracker->on_cast(event, *context_.observations);
  }
}

void Caster::count_weight_gradients(std::span<const float> values) {
  Array unscaled({std::ssize(values)});
  scale(values, static_cast<float>(1 / carried_scale_), unscaled.values());
  context_.weight_gradients->add(unscaled.values());
}

CastDetail Caster::wanted(Role role) const {
  return adds_up(role) ? CastDetail::histogram : watched(role);
}

CastDetail Caster::watched(Role role) const {
  CastDetail most = CastDetail::none;
  if (!observed()) return most;
  for (const auto& tracker : *trackers_) most = std::max(most, tracker->watches_casts(role));
  return most;
}

bool Caster::watches_reductions() const {
  return observed() && std::any_of(trackers_->begin(), trackers_->end(),
                                   [](const auto& tracker) { return tracker->watches_reductions(); });
}

bool Caster::watches_updates() const {
  return observed() && std::any_of(trackers_->begin(), trackers_->end(),
                                   [](const auto& tracker) { return tracker->watches_updates(); });
}

Quantizer Caster::weight_format() const {
  // With an FP32 master copy the question is what a copy in the forward weights' format would have lost; an
  // FP32 run is asked what FP16 would have.
  Quantizer stored = policy_.quantizer(Role::master_weight);
  if (stored.is_identity()) stored = policy_.quantizer(Role::weight);
  return stored.is_identity() ? Quantizer{.format = fp16} : stored;
}

void Caster::sum_columns(std::string_view tensor, const ColumnTerms& terms, const AccumulateModel& model,
                         std::span<float> sums) {
  if (!watches_reductions()) return column_sums(terms, model, sums);
  const Site where = site(tensor, Role::activation);
  if (tells_later()) {
    const auto column_counters = readback_.take<ColumnCounters>(sums.size());
    cuda::counted_column_sums(terms, model, sums, readback_.device_values(column_counters));
    pending_.push_back({std::string(tensor), where, {}, PendingReduction{column_counters, terms.rows}});
    return;
  }
  const ReductionEvent event{where, counted_column_sums(terms, model, sums)};
  for (const auto& tracker : *trackers_) tracker->on_reduction(event, *context_.observations);
}

}  // namespace halfscope
