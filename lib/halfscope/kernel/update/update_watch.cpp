// Reading of an update's counts once they have come to the host.
#include <halfscope/kernel/update/detail/update_watch.hpp>

namespace halfscope {

UpdateEffect watched_effect(std::span<const std::int64_t> counters, std::span<const UpdateSums> sums) {
  UpdateEffect total{.nonzero = counters[first_effect_bin], .lost = counters[first_effect_bin + 1]};
  for (const UpdateSums& tile : sums) {
    total.applied += tile.applied;
    total.intended += tile.intended;
  }
  return total;
}

}  // namespace halfscope
