// Events of a step: counted as they happen, notified at once or when the step ends.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <halfscope/kernel/reduce/reduce.hpp>
#include <halfscope/stats/tracker.hpp>

#include "lib/nn/optimizer_step.hpp"

namespace halfscope {

using TrackerList = std::vector<std::unique_ptr<Tracker>>;
using MakeUpdate = std::function<void(const WeightUpdate&)>;

/// Who observes a cast.
struct CastObservers {
  bool trackers = false;
  bool weight_gradients = false;  ///< the step's histogram of all of them

  friend bool operator==(const CastObservers&, const CastObservers&) = default;
};

/// A cast that is counted.
struct CountedCast {
  Site site;
  Quantizer quantizer;
  CastDetail detail{};  ///< not none
  RandomStream stream;
  CastObservers observers;
};

/// Counts events and delivers them to the trackers. Delivery is immediate on the CPU, or if any tracker asks
/// for it. Otherwise counts stay on the device until `collect`, which delivers them in order. If every
/// tracker accepts merged delivery, the parts of a tensor arrive as one.
class EventQueue {
 public:
  /// `trackers` outlives the queue.
  explicit EventQueue(TrackerList& trackers) : trackers_(&trackers) {}

  /// The observers from here on: the trackers, unless `observations` is null, and `weight_gradients`, which
  /// takes in all of a step before they are rounded, or null. Events that were not collected are dropped.
  void begin_step(StepObservations* observations, ExponentHistogram* weight_gradients);

  /// The observers of casts of `role`.
  [[nodiscard]] CastObservers observers(Role role) const;
  /// How closely they look.
  [[nodiscard]] CastDetail watched(Role role) const;
  /// Whether the trackers are notified at `collect` of what is counted on the active device.
  [[nodiscard]] bool is_deferred() const;

  /// Rounds `values` and counts what that does.
  void cast(std::span<float> values, const CountedCast& cast);
  /// `column_sums`, counted where trackers watch reductions.
  void sum_columns(const Site& site, const ColumnTerms& terms, const AccumulateModel& model,
                   std::span<float> sums);
  /// Calls `make(update)`. If a tracker watches updates, `update.watch` is set and the counts are delivered;
  /// `quantizer` decides which updates are lost.
  void update(const Site& site, const Quantizer& quantizer, WeightUpdate update, const MakeUpdate& make);

  /// Whether any tracker watches operands now; and its notice of one.
  [[nodiscard]] bool watches_operands() const { return any_tracker(&Tracker::watches_operands); }
  void notify_operand(const OperandEvent& event) const;

  /// Where the device counts until `collect`, and where others let it leave what they want to know.
  [[nodiscard]] Readback& readback() { return readback_; }
  /// Waits for the device once, reads back what it has counted since the last time and notifies the trackers.
  void collect();

 private:
  struct PendingCast {
    QueuedCast cast;
    CastObservers observers;
  };
  struct PendingReduction {
    ReadbackSlot<ColumnCounters> column_counters;
    std::int64_t terms = 0;  ///< terms of each sum
  };
  struct PendingUpdate {
    ReadbackSlot<std::int64_t> counters;
    ReadbackSlot<UpdateSums> sums;
    std::int64_t elements = 0;
  };
  /// One whose counts are not known yet.
  struct PendingEvent {
    std::string tensor;
    Site site;  ///< but for its tensor
    Quantizer quantizer;
    std::variant<PendingCast, PendingReduction, PendingUpdate> what;
  };

  [[nodiscard]] EventDelivery delivery() const;
  [[nodiscard]] bool any_tracker(bool (Tracker::*watches)() const) const;
  void queue_cast(std::span<float> values, const CountedCast& cast);
  /// The pending cast of another part of the tensor of `cast`, with the same observers; null if there is
  /// none.
  [[nodiscard]] PendingCast* other_part(const CountedCast& cast);

  /// Notifies of an event whose counts `readback` has read.
  void notify(const PendingEvent& event, const Readback& readback) const;
  void notify_cast(const CastEvent& event, const CastObservers& observers) const;
  void notify_reduction(const ReductionEvent& event) const;
  void notify_update(const Site& site, const Quantizer& quantizer, const PendingUpdate& update,
                     const Readback& readback) const;

  TrackerList* trackers_;
  StepObservations* observations_ = nullptr;
  ExponentHistogram* weight_gradients_ = nullptr;
  Readback readback_{};
  Readback at_once_{};                   ///< updates of which the trackers are notified at once
  std::vector<PendingEvent> pending_{};  ///< in the order in which they happened
};

}  // namespace halfscope
