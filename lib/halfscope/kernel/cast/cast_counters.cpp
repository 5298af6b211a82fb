// Counting of a cast on the active device, with the instruction set in use.
#include <halfscope/kernel/cast/cast_counters.hpp>

#include <halfscope/kernel/cast/detail/cast_counters_simd.hpp>

namespace halfscope {

void count_cast(std::span<const float> values, const CastLimits& limits, CastCounters& counters) {
  if (active_device() == Device::cuda) return cuda::count_cast(values, limits, counters);
  dispatch_isa([&]<Isa isa>() { count_cast_isa<isa>(values.data(), values.size(), limits, counters); });
}

}  // namespace halfscope
