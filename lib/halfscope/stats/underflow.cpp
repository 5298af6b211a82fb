// What casts did, as records: one per tensor and step, its parts merged.
#include <halfscope/stats/underflow.hpp>

#include <algorithm>

namespace halfscope {
namespace {

TensorCounters counters_of(const CastEvent& event) {
  const ExponentHistogram& before = event.counts.before;
  return {.tensor = std::string(event.site.tensor),
          .role = event.site.role,
          .scale = event.site.scale,
          .elements = before.elements(),
          .zeros = before.zeros(),
          .flushed = event.counts.flushed,
          .subnormal = event.counts.subnormal,
          .overflow = event.counts.overflow,
          .nonfinite = before.infinities() + before.nans(),
          .max_abs = before.max_abs()};
}

/// Integers and a maximum: the same whatever the order of the parts.
void merge(TensorCounters& all, const TensorCounters& part) {
  all.elements += part.elements;
  all.zeros += part.zeros;
  all.flushed += part.flushed;
  all.subnormal += part.subnormal;
  all.overflow += part.overflow;
  all.nonfinite += part.nonfinite;
  all.max_abs = std::max(all.max_abs, part.max_abs);
}

/// What the step's records say of the other parts of the event's tensor; null where there is nothing yet.
TensorCounters* other_parts(const Site& site, std::vector<TensorCounters>& tensors) {
  if (site.part == whole_tensor) return nullptr;
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const TensorCounters& counters) {
    return counters.tensor == site.tensor && counters.role == site.role;
  });
  return found == tensors.end() ? nullptr : &*found;
}

HistogramRecord* other_parts(const Site& site, std::vector<HistogramRecord>& histograms) {
  if (site.part == whole_tensor) return nullptr;
  const auto found = std::find_if(histograms.begin(), histograms.end(), [&](const HistogramRecord& record) {
    return record.tensor == site.tensor && record.what == name_of(site.role);
  });
  return found == histograms.end() ? nullptr : &*found;
}

class GradientUnderflow final : public Tracker {
 public:
  explicit GradientUnderflow(RoleSet roles) : roles_(roles) {}

  [[nodiscard]] bool watches_casts(Role role) const override { return roles_.contains(role); }

  void on_cast(const CastEvent& event, StepObservations& step) override {
    const Site& site = event.site;
    const TensorCounters counters = counters_of(event);
    if (TensorCounters* seen = other_parts(site, step.tensors)) {
      merge(*seen, counters);
    } else {
      step.tensors.push_back(counters);
    }
    if (HistogramRecord* seen = other_parts(site, step.histograms)) {
      seen->histogram.merge(event.counts.before);
    } else {
      step.histograms.push_back({.tensor = std::string(site.tensor),
                                 .what = std::string(name_of(site.role)),
                                 .scale = site.scale,
                                 .histogram = event.counts.before});
    }
  }

 private:
  RoleSet roles_;
};

}  // namespace

std::unique_ptr<Tracker> make_gradient_underflow(const TrackerOptions& options) {
  return std::make_unique<GradientUnderflow>(options.roles);
}

}  // namespace halfscope
