// A tracker as a newcomer would add it: elements of the cast weight gradients.
#include <halfscope/stats/trackers.hpp>

namespace halfscope {
namespace {

class SampleTracker final : public Tracker {
 public:
  [[nodiscard]] CastDetail watches_casts(Role role) const override {
    return role == Role::weight_gradient ? CastDetail::counters : CastDetail::none;
  }
  void on_cast(const CastEvent& event, StepObservations& step) override {
    if (event.site.role != Role::weight_gradient) return;
    step.tensors.push_back({.tensor = std::string(event.site.tensor),
                            .role = event.site.role,
                            .scale = event.site.scale,
                            .elements = static_cast<std::int64_t>(event.after.size())});
  }
};

}  // namespace

std::unique_ptr<Tracker> make_sample_tracker(const TrackerOptions& /*options*/) {
  return std::make_unique<SampleTracker>();
}

}  // namespace halfscope
