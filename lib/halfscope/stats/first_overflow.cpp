// Follows a step cast by cast until something is not finite.
#include <halfscope/stats/trackers.hpp>

namespace halfscope {
namespace {

class FirstOverflowTracker final : public Tracker {
 public:
  [[nodiscard]] WatchedSteps watched_steps() const override { return WatchedSteps::overflowed; }
  [[nodiscard]] CastDetail watches_casts(Role) const override { return CastDetail::counters; }
  [[nodiscard]] bool watches_reductions() const override { return true; }
  [[nodiscard]] EventDelivery delivery() const override { return EventDelivery::deferred; }

  void on_cast(const CastEvent& event, StepObservations& step) override {
    const CastCounters& counters = event.counts.counters;
    // A cast to FP32 is counted as if it were to FP16, but makes nothing infinite.
    const std::int64_t overflow = event.quantizer.is_identity() ? 0 : counters.overflow;
    follow(event.site, counters.nonfinite > 0 ? OverflowCause::arithmetic : OverflowCause::cast,
           {.tensor = std::string(event.site.tensor),
            .what = std::string(name_of(event.site.role)),
            .elements = event.counts.elements,
            .nonfinite = counters.nonfinite + overflow,
            .max_abs = counters.max_abs},
           step);
  }

  void on_reduction(const ReductionEvent& event, StepObservations& step) override {
    follow(event.site, OverflowCause::reduction,
           {.tensor = std::string(event.site.tensor),
            .what = "reduction",
            .elements = event.counters.reductions,
            .nonfinite = event.counters.overflowed,
            .max_abs = event.counters.largest_partial_sum},
           step);
  }

 private:
  static void follow(const Site& site, OverflowCause cause, const TraceRecord& record,
                     StepObservations& step) {
    if (step.first_overflow) return;
    if (record.nonfinite > 0) {
      step.first_overflow = {site.pass, cause, record};
      return;
    }
    if (step.trace.size() == trace_length) step.trace.erase(step.trace.begin());
    step.trace.push_back(record);
  }
};

}  // namespace

std::unique_ptr<Tracker> make_first_overflow(const TrackerOptions& /*options*/) {
  return std::make_unique<FirstOverflowTracker>();
}

}  // namespace halfscope
