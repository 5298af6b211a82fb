// Rounding of an array on the active device, with the instruction set in use.
#include <halfscope/kernel/cast/round.hpp>

#include <string>

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

}  // namespace halfscope
