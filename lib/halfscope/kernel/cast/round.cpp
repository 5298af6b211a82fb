// Rounding of an array on the active device, with the instruction set in use.
#include <halfscope/kernel/cast/round.hpp>

#include <string>

#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/cast/detail/round_simd.hpp>

namespace halfscope {

void round(std::span<const float> in, std::span<float> out, const Quantizer& q, RandomStream stream) {
  if (in.size() != out.size()) {
    throw InvalidArgument("round: " + std::to_string(in.size()) + " values do not fit an output of " +
                          std::to_string(out.size()) + "; give both the same size");
  }
  if (active_device() == Device::cuda) return cuda::round(in, out, q, stream);
  dispatch_isa([&]<Isa isa>() { round_isa<isa>(in.data(), out.data(), in.size(), q, stream); });
}

void round_in_threads(std::span<float> values, const Quantizer& q, const RandomStream& stream) {
  constexpr std::int64_t grain = 16384;  // 64 KiB
  if (q.rounding == Rounding::stochastic || active_device() == Device::cuda)
    return round(values, values, q, stream);
  parallel_for_ranges(
      static_cast<std::int64_t>(values.size()), grain, [&](std::int64_t first, std::int64_t count) {
        const auto range = values.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
        round(range, range, q);
      });
}

}  // namespace halfscope
