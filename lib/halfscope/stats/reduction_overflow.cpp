// Records the counters that the reductions bring along.
#include <halfscope/stats/trackers.hpp>

namespace halfscope {
namespace {

class ReductionOverflow final : public Tracker {
 public:
  [[nodiscard]] bool watches_reductions() const override { return true; }
  [[nodiscard]] EventDelivery delivery() const override { return EventDelivery::merged; }
  void on_reduction(const ReductionEvent& event, StepObservations& step) override {
    step.reductions.push_back({std::string(event.site.tensor), event.counters});
  }
};

}  // namespace

std::unique_ptr<Tracker> make_reduction_overflow(const TrackerOptions& /*options*/) {
  return std::make_unique<ReductionOverflow>();
}

}  // namespace halfscope
