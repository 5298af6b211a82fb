// Adds up applied and intended updates.
#include "sim/train/applied_updates.hpp"

#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/update/update_effect.hpp>
#include <halfscope/stats/lost_updates.hpp>

#include "lib/nn/elementwise.hpp"

namespace halfscope {

AppliedUpdates::AppliedUpdates(Caster& caster, double decay, StepObservations* observations)
    : caster_(&caster),
      decay_(static_cast<float>(decay)),
      observations_(observations),
      stores_narrow_(!caster.policy().quantizer(Role::master_weight).is_identity()) {}

void AppliedUpdates::count_decay(const Parameter& parameter) {
  Array decays(parameter.master.shape());
  scale(parameter.master.view(), -decay_, decays.values());
  const Site site = caster_->site(parameter.name, Role::master_weight, {.pass = TrainingPass::update});
  seen_[parameter.name].decay = update_effect(parameter.master.values(), decays.values(),
                                              weight_storage(site, caster_->weight_format()));
}

void AppliedUpdates::before(const Parameter& parameter) {
  if (observations_ == nullptr) return;
  if (decay_ > 0) count_decay(parameter);
  if (stores_narrow_) before_ = to_host_floats(parameter.master);
}

void AppliedUpdates::intended(const Parameter& parameter) {
  if (observations_ != nullptr && stores_narrow_) intended_ = to_host_floats(parameter.master);
}

void AppliedUpdates::applied(const Parameter& parameter) {
  if (observations_ == nullptr || !stores_narrow_) return;
  const Array stored = to_host_floats(parameter.master);
  UpdateProjection& projection = seen_[parameter.name].projection;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const double before = before_[i], update = double{intended_[i]} - before;
    projection.along += (double{stored[i]} - before) * update;
    projection.square += update * update;
  }
}

void AppliedUpdates::write() {
  if (observations_ == nullptr) return;
  for (UpdateCounters& counters : observations_->updates) {
    const auto found = seen_.find(counters.tensor);
    if (found == seen_.end()) continue;
    if (stores_narrow_) counters.projection = found->second.projection;
    counters.decays = found->second.decay.nonzero;
    counters.lost_decays = found->second.decay.lost;
  }
}

}  // namespace halfscope
