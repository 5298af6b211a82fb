// Counting on the device: what is queued there, and what the trackers are told when it has been read back.
#include <algorithm>
#include <utility>

#include <halfscope/stats/lost_updates.hpp>

#include "lib/nn/elementwise.hpp"
#include "sim/cast.hpp"

namespace halfscope {
namespace {

/// The cast of another part of the tensor at `where`, of which the same are to hear; null where there is
/// none.
PendingCast* other_part(std::vector<PendingEvent>& events, const Site& where,
                        const CastSubscribers& subscribers) {
  for (PendingEvent& event : events) {
    auto* const cast = std::get_if<PendingCast>(&event.what);
    if (cast != nullptr && cast->subscribers == subscribers && event.site.role == where.role &&
        event.tensor == where.tensor) {
      return cast;
    }
  }
  return nullptr;
}

}  // namespace

EventDelivery Caster::delivery() const {
  EventDelivery soonest = EventDelivery::merged;
  if (!observed()) return soonest;
  for (const auto& tracker : *trackers_) soonest = std::min(soonest, tracker->delivery());
  return soonest;
}

bool Caster::tells_later() const {
  return active_device() == Device::cuda && delivery() != EventDelivery::immediate;
}

void Caster::cast_later(std::span<float> values, const Site& where, CastDetail detail) {
  const Quantizer& quantizer = policy_.quantizer(where.role);
  const auto queue = [&](std::span<float> counted, const Quantizer& to, const CastSubscribers& subscribers) {
    const bool merges = where.part != whole_tensor && delivery() == EventDelivery::merged;
    PendingCast* pending = merges ? other_part(pending_, where, subscribers) : nullptr;
    if (pending == nullptr) {
      pending_.push_back({std::string(where.tensor), where, to,
                          PendingCast{QueuedCast(to, detail, readback_), subscribers}});
      pending = &std::get<PendingCast>(pending_.back().what);
    }
    pending->cast.round_and_count(counted, cast_stream(where), readback_);
  };
  const bool carries = adds_up(where.role) && carried_scale_ != 1;
  if (carries) {
    Array unscaled({std::ssize(values)});
    scale(values, static_cast<float>(1 / carried_scale_), unscaled.values());
    queue(unscaled.values(), {}, {.trackers = false, .weight_gradients = true});
  }
  queue(values, quantizer, {observed(), adds_up(where.role) && !carries});
}

void Caster::update(std::string_view tensor, WeightUpdate update, const MakeUpdate& make) {
  if (!watches_updates()) return make(update);
  Readback& readback = tells_later() ? readback_ : at_once_;
  const Site where = site(tensor, Role::master_weight);
  const std::size_t elements = update.weights.size();
  const PendingUpdate counted{readback.take<std::int64_t>(watch_counters),
                              readback.take<UpdateSums>(watch_tiles(elements)),
                              static_cast<std::int64_t>(elements)};
  update.watch = {weight_storage(where, weight_format()), readback.device_values(counted.counters),
                  readback.device_values(counted.sums)};
  make(update);
  PendingEvent event{std::string(tensor), where, weight_format(), counted};
  if (tells_later()) return pending_.push_back(std::move(event));
  at_once_.read();
  tell(event, at_once_);
}

void Caster::collect() {
  readback_.read();
  for (const PendingEvent& event : std::exchange(pending_, {})) tell(event, readback_);
}

void Caster::tell(const PendingEvent& event, const Readback& readback) const {
  Site where = event.site;
  where.tensor = event.tensor;
  if (const auto* pending = std::get_if<PendingCast>(&event.what)) {
    const CastCounts counts = pending->cast.counts(readback);
    if (pending->subscribers.weight_gradients) context_.weight_gradients->merge(*counts.before);
    if (pending->subscribers.trackers) tell_cast({where, event.quantizer, counts, {}});
  } else if (const auto* reduction = std::get_if<PendingReduction>(&event.what)) {
    const ReductionEvent seen{where,
                              counters_of(readback.values(reduction->column_counters), reduction->terms)};
    for (const auto& tracker : *trackers_) tracker->on_reduction(seen, *context_.observations);
  } else {
    const auto& update = std::get<PendingUpdate>(event.what);
    const auto counters = readback.values(update.counters);
    HistogramCounts ratios;
    add_bins_to(ratios, counters.first(binned::size), binade_edges(fp16));
    const CountedUpdate counted{update.elements, watched_effect(counters, readback.values(update.sums)),
                                ExponentHistogram(ratios)};
    for (const auto& tracker : *trackers_)
      tracker->on_update({where, event.quantizer, {}, {}, &counted}, *context_.observations);
  }
}

}  // namespace halfscope
