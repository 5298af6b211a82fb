// Counting of a cast on the active device, with the instruction set in use.
#include <halfscope/kernel/cast/cast_counters.hpp>

#include <halfscope/core/detail/equal_sizes.hpp>
#include <halfscope/kernel/cast/detail/cast_counters_element.hpp>
#include <halfscope/kernel/cast/detail/cast_counters_simd.hpp>

namespace halfscope {
namespace {

void count_on_cpu(std::span<const float> values, const float* decisive, const CastLimits& limits,
                  CastCounters& counters) {
  dispatch_isa(
      [&]<Isa isa>() { count_cast_isa<isa>(values.data(), decisive, values.size(), limits, counters); });
}

}  // namespace

void count_cast(std::span<const float> values, const CastLimits& limits, CastCounters& counters) {
  if (active_device() == Device::cuda) return cuda::count_cast(values, limits, counters);
  count_on_cpu(values, values.data(), limits, counters);
}

void count_rounded(std::span<const float> values, std::span<const float> rounded, const FloatFormat& format,
                   CastCounters& counters) {
  detail::check_equal_sizes("count_rounded", values.size(), rounded.size());
  count_on_cpu(values, rounded.data(), limits_of_rounded(format), counters);
}

}  // namespace halfscope
