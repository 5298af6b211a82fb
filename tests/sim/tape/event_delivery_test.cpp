// When trackers are notified of events on the device: at once, later, or of all parts as one.
#include "sim/tape/cast_scope.hpp"

#include "tests/support/device_parity.hpp"

namespace halfscope::event_delivery_test {
namespace {

/// Writes down its events.
class EventLog final : public Tracker {
 public:
  EventLog(EventDelivery delivery, std::vector<std::string>& seen) : delivery_(delivery), seen_(seen) {}
  [[nodiscard]] CastDetail watches_casts(Role) const override { return CastDetail::counters; }
  [[nodiscard]] bool watches_reductions() const override { return true; }
  [[nodiscard]] bool watches_updates() const override { return true; }
  [[nodiscard]] EventDelivery delivery() const override { return delivery_; }

  void on_cast(const CastEvent& event, StepObservations&) override {
    seen_.push_back(std::string(event.site.tensor) + " " + std::to_string(event.site.part) + ": " +
                    std::to_string(event.counts.elements) + " elements, " +
                    std::to_string(event.counts.counters.flushed) + " flushed, " +
                    std::to_string(event.after.size()) + " values");
  }
  void on_reduction(const ReductionEvent& event, StepObservations&) override {
    seen_.push_back(std::string(event.site.tensor) + ": " + std::to_string(event.counters.reductions) +
                    " sums");
  }
  void on_update(const UpdateEvent& event, StepObservations&) override {
    seen_.push_back(std::string(event.site.tensor) + ": " + std::to_string(event.counts.elements) +
                    " weights");
  }

 private:
  EventDelivery delivery_;
  std::vector<std::string>& seen_;
};

struct SeenEvents {
  std::vector<std::string> before, all;  ///< `collect`
};

/// Casts two parts of a tensor, sums columns and casts one more.
SeenEvents observe(Device device, EventDelivery delivery) {
  const DeviceScope scope(device);
  SeenEvents seen;
  TrackerList trackers;
  trackers.push_back(std::make_unique<EventLog>(delivery, seen.all));
  Caster caster(fp16_mixed_policy(), 0, trackers);
  StepObservations unused;
  caster.begin_step({.step = 1, .observations = &unused});
  Array a = Array::from({4}, {1, 2, 1e-9f, 4}), sums({2});
  caster.cast(a.values().first(2), "parts", Role::activation, {}, 0);
  CastScope(caster, {}).sum_columns("columns", {.x = a.data(), .rows = 2, .columns = 2}, {}, sums.values());
  caster.cast(a.values().last(2), "parts", Role::activation, {}, 1);
  caster.cast(a, "whole", Role::activation, {});
  seen.before = seen.all;
  caster.events().collect();
  return seen;
}

using Lines = std::vector<std::string>;

TEST_CASE("a tracker is notified of the device's events when it says", "[trackers][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  const Lines at_once{"parts 0: 2 elements, 0 flushed, 2 values", "columns: 2 sums",
                      "parts 1: 2 elements, 1 flushed, 2 values",
                      "whole -1: 4 elements, 0 flushed, 4 values"};
  const Lines later{"parts 0: 2 elements, 0 flushed, 0 values", "columns: 2 sums",
                    "parts 1: 2 elements, 1 flushed, 0 values", "whole -1: 4 elements, 0 flushed, 0 values"};
  const Lines merged{"parts 0: 4 elements, 1 flushed, 0 values", "columns: 2 sums",
                     "whole -1: 4 elements, 0 flushed, 0 values"};
  for (const EventDelivery delivery :
       {EventDelivery::immediate, EventDelivery::deferred, EventDelivery::merged}) {
    CHECK(observe(Device::cpu, delivery).before == at_once);  // on the CPU always
    CHECK(observe(Device::cpu, delivery).all == at_once);
  }
  CHECK(observe(Device::cuda, EventDelivery::immediate).before == at_once);
  CHECK(observe(Device::cuda, EventDelivery::immediate).all == at_once);
  CHECK(observe(Device::cuda, EventDelivery::deferred).before.empty());
  CHECK(observe(Device::cuda, EventDelivery::deferred).all == later);
  CHECK(observe(Device::cuda, EventDelivery::merged).before.empty());
  CHECK(observe(Device::cuda, EventDelivery::merged).all == merged);
}

TEST_CASE("if one tracker is notified at once all are", "[trackers][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  const DeviceScope scope(Device::cuda);
  Lines one, other;
  TrackerList trackers;
  trackers.push_back(std::make_unique<EventLog>(EventDelivery::merged, one));
  trackers.push_back(std::make_unique<EventLog>(EventDelivery::immediate, other));
  Caster caster(fp16_mixed_policy(), 0, trackers);
  StepObservations unused;
  caster.begin_step({.step = 1, .observations = &unused});
  CHECK_FALSE(caster.events().is_deferred());
  Array a = Array::from({2}, {1, 2});
  caster.cast(a, "whole", Role::activation, {});
  bool counted = false;
  caster.update("w", {.gradient = a.values(), .weights = a.values(), .largest = {}},
                [&](const WeightUpdate& update) { counted = update.watch.has_value(); });
  CHECK(counted);
  CHECK(one == other);
  CHECK(one == Lines{"whole -1: 2 elements, 0 flushed, 2 values", "w: 2 weights"});
}

}  // namespace
}  // namespace halfscope::event_delivery_test
