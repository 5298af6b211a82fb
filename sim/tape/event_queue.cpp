// Counts events at once or on the device, and notifies the trackers.
#include "sim/tape/event_queue.hpp"

#include <algorithm>
#include <utility>

#include <halfscope/stats/lost_updates.hpp>

namespace halfscope {

void EventQueue::begin_step(StepObservations* observations, ExponentHistogram* weight_gradients) {
  observations_ = observations;
  weight_gradients_ = weight_gradients;
  pending_.clear();
  readback_.forget();
  at_once_.forget();
}

CastObservers EventQueue::observers(Role role) const {
  return {.trackers = observations_ != nullptr,
          .weight_gradients = role == Role::weight_gradient && weight_gradients_ != nullptr};
}

CastDetail EventQueue::watched(Role role) const {
  if (observers(role).weight_gradients) return CastDetail::histogram;
  CastDetail most = CastDetail::none;
  if (observations_ == nullptr) return most;
  for (const auto& tracker : *trackers_) most = std::max(most, tracker->watches_casts(role));
  return most;
}

EventDelivery EventQueue::delivery() const {
  EventDelivery soonest = EventDelivery::merged;
  if (observations_ == nullptr) return soonest;
  for (const auto& tracker : *trackers_) soonest = std::min(soonest, tracker->delivery());
  return soonest;
}

bool EventQueue::is_deferred() const {
  return active_device() == Device::cuda && delivery() != EventDelivery::immediate;
}

bool EventQueue::any_tracker(bool (Tracker::*watches)() const) const {
  return observations_ != nullptr && std::any_of(trackers_->begin(), trackers_->end(),
                                                 [&](const auto& tracker) { return (*tracker.*watches)(); });
}

void EventQueue::cast(std::span<float> values, const CountedCast& cast) {
  if (is_deferred()) return queue_cast(values, cast);
  const CastCounts counts = round_and_count(values, cast.quantizer, cast.detail, cast.stream);
  notify_cast({cast.site, cast.quantizer, counts, values}, cast.observers);
}

void EventQueue::queue_cast(std::span<float> values, const CountedCast& cast) {
  const bool merges = cast.site.in_parts() && delivery() == EventDelivery::merged;
  PendingCast* pending = merges ? other_part(cast) : nullptr;
  if (pending == nullptr) {
    pending_.push_back({std::string(cast.site.tensor), cast.site, cast.quantizer,
                        PendingCast{QueuedCast(cast.quantizer, cast.detail, readback_), cast.observers}});
    pending = &std::get<PendingCast>(pending_.back().what);
  }
  pending->cast.round_and_count(values, cast.stream, readback_);
}

EventQueue::PendingCast* EventQueue::other_part(const CountedCast& cast) {
  for (PendingEvent& event : pending_) {
    auto* const pending = std::get_if<PendingCast>(&event.what);
    if (pending != nullptr && pending->observers == cast.observers && event.site.role == cast.site.role &&
        event.tensor == cast.site.tensor) {
      return pending;
    }
  }
  return nullptr;
}

void EventQueue::sum_columns(const Site& site, const ColumnTerms& terms, const AccumulateModel& model,
                             std::span<float> sums) {
  if (!any_tracker(&Tracker::watches_reductions)) return column_sums(terms, model, sums);
  if (!is_deferred()) return notify_reduction({site, counted_column_sums(terms, model, sums)});
  const auto column_counters = readback_.take<ColumnCounters>(sums.size());
  cuda::counted_column_sums(terms, model, sums, readback_.device_values(column_counters));
  pending_.push_back({std::string(site.tensor), site, {}, PendingReduction{column_counters, terms.rows}});
}

void EventQueue::update(const Site& site, const Quantizer& quantizer, WeightUpdate update,
                        const MakeUpdate& make) {
  if (!any_tracker(&Tracker::watches_updates)) return make(update);
  const bool deferred = is_deferred();
  Readback& readback = deferred ? readback_ : at_once_;
  const std::size_t elements = update.weights.size();
  const PendingUpdate counted{readback.take<std::int64_t>(watch_counters),
                              readback.take<UpdateSums>(update_tiles(elements)),
                              static_cast<std::int64_t>(elements)};
  update.watch = {weight_storage(site, quantizer), readback.device_values(counted.counters),
                  readback.device_values(counted.sums)};
  make(update);
  if (deferred) return pending_.push_back({std::string(site.tensor), site, quantizer, counted});
  at_once_.read();
  notify_update(site, quantizer, counted, at_once_);
}

void EventQueue::collect() {
  readback_.read();
  for (const PendingEvent& event : std::exchange(pending_, {})) notify(event, readback_);
}

void EventQueue::notify(const PendingEvent& event, const Readback& readback) const {
  Site site = event.site;
  site.tensor = event.tensor;
  if (const auto* cast = std::get_if<PendingCast>(&event.what)) {
    notify_cast({site, event.quantizer, cast->cast.counts(readback), {}}, cast->observers);
  } else if (const auto* reduction = std::get_if<PendingReduction>(&event.what)) {
    notify_reduction({site, counters_of(readback.values(reduction->column_counters), reduction->terms)});
  } else {
    notify_update(site, event.quantizer, std::get<PendingUpdate>(event.what), readback);
  }
}

void EventQueue::notify_cast(const CastEvent& event, const CastObservers& observers) const {
  if (observers.weight_gradients) weight_gradients_->merge(*event.counts.before);
  if (!observers.trackers) return;
  for (const auto& tracker : *trackers_) {
    if (tracker->watches_casts(event.site.role) != CastDetail::none) tracker->on_cast(event, *observations_);
  }
}

void EventQueue::notify_reduction(const ReductionEvent& event) const {
  for (const auto& tracker : *trackers_) tracker->on_reduction(event, *observations_);
}

void EventQueue::notify_operand(const OperandEvent& event) const {
  for (const auto& tracker : *trackers_) tracker->on_operand(event, *observations_);
}

void EventQueue::notify_update(const Site& site, const Quantizer& quantizer, const PendingUpdate& update,
                               const Readback& readback) const {
  const auto counters = readback.values(update.counters);
  HistogramCounts ratios;
  add_bins_to(ratios, counters.first(binned::size), binade_edges(fp16));
  const CountedUpdate counted{update.elements, watched_effect(counters, readback.values(update.sums)),
                              ExponentHistogram(ratios)};
  for (const auto& tracker : *trackers_) tracker->on_update({site, quantizer, counted}, *observations_);
}

}  // namespace halfscope
