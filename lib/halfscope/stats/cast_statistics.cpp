// The cast_statistics tracker: one record per tensor and step, its parts merged.
#include <halfscope/stats/trackers.hpp>

#include <algorithm>

namespace halfscope {
namespace {

TensorCounters counters_of(const CastEvent& event) {
  return {.tensor = std::string(event.site.tensor),
          .role = event.site.role,
          .scale = event.site.scale,
          .elements = event.counts.elements,
          .counters = event.counts.counters};
}

/// The step's record of the other parts of the event's tensor; null where there is none yet.
TensorCounters* other_parts(const Site& site, std::vector<TensorCounters>& tensors) {
  if (!site.in_parts()) return nullptr;
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const TensorCounters& counters) {
    return counters.tensor == site.tensor && counters.role == site.role;
  });
  return found == tensors.end() ? nullptr : &*found;
}

HistogramRecord* other_parts(const Site& site, std::vector<HistogramRecord>& histograms) {
  if (!site.in_parts()) return nullptr;
  const auto found = std::find_if(histograms.begin(), histograms.end(), [&](const HistogramRecord& record) {
    return record.tensor == site.tensor && record.what == name_of(site.role);
  });
  return found == histograms.end() ? nullptr : &*found;
}

void keep_histogram(const Site& site, const ExponentHistogram& histogram, StepObservations& step) {
  if (HistogramRecord* seen = other_parts(site, step.histograms)) {
    seen->histogram.merge(histogram);
  } else {
    step.histograms.push_back({.tensor = std::string(site.tensor),
                               .what = std::string(name_of(site.role)),
                               .scale = site.scale,
                               .histogram = histogram});
  }
}

class CastStatisticsTracker final : public Tracker {
 public:
  explicit CastStatisticsTracker(RoleSet roles) : roles_(roles) {}

  [[nodiscard]] CastDetail watches_casts(Role role) const override {
    if (!roles_.contains(role)) return CastDetail::none;
    return gradient_roles.contains(role) ? CastDetail::histogram : CastDetail::counters;
  }

  [[nodiscard]] EventDelivery delivery() const override { return EventDelivery::merged; }

  void on_cast(const CastEvent& event, StepObservations& step) override {
    const TensorCounters counters = counters_of(event);
    if (TensorCounters* seen = other_parts(event.site, step.tensors)) {
      seen->elements += counters.elements;
      merge(seen->counters, counters.counters);
    } else {
      step.tensors.push_back(counters);
    }
    if (gradient_roles.contains(event.site.role)) keep_histogram(event.site, *event.counts.before, step);
  }

 private:
  RoleSet roles_;
};

}  // namespace

std::unique_ptr<Tracker> make_cast_statistics(const TrackerOptions& options) {
  return std::make_unique<CastStatisticsTracker>(options.roles);
}

}  // namespace halfscope
