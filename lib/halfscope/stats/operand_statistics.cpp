// The operand_statistics tracker: one record per operand and step, its parts merged.
#include <halfscope/stats/trackers.hpp>

#include <algorithm>

namespace halfscope {
namespace {

class OperandStatisticsTracker final : public Tracker {
 public:
  [[nodiscard]] bool watches_operands() const override { return true; }
  [[nodiscard]] EventDelivery delivery() const override { return EventDelivery::merged; }

  void on_operand(const OperandEvent& event, StepObservations& step) override {
    const auto found = std::ranges::find_if(step.operands, [&](const OperandCounters& seen) {
      return seen.layer == event.site.tensor && seen.place == event.place;
    });
    OperandCounters part{std::string(event.site.tensor), event.place, event.scales, event.magnitude,
                         event.counts};
    if (found == step.operands.end()) {
      step.operands.push_back(std::move(part));
    } else {
      found->merge(part);
    }
  }
};

}  // namespace

std::unique_ptr<Tracker> make_operand_statistics(const TrackerOptions& /*options*/) {
  return std::make_unique<OperandStatisticsTracker>();
}

}  // namespace halfscope
