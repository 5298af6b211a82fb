// Counting of a cast on the active device, with the instruction set in use.
#include <halfscope/kernel/cast/cast_tally.hpp>

#include <halfscope/kernel/cast/detail/cast_tally_simd.hpp>

namespace halfscope {

void tally_cast(std::span<const float> values, const CastLimits& limits, CastTally& tally) {
  if (active_device() == Device::cuda) return cuda::tally_cast(values, limits, tally);
  dispatch_isa([&]<Isa isa>() { tally_cast_isa<isa>(values.data(), values.size(), limits, tally); });
}

}  // namespace halfscope
