// Widening with the instruction set in use.
#include <halfscope/kernel/cast/convert.hpp>

#include <halfscope/kernel/cast/detail/widen_simd.hpp>

namespace halfscope {

void widen(DType type, const std::byte* in, std::span<float> out) {
  dispatch_isa([&]<Isa isa>() { widen_isa<isa>(type, in, out.data(), out.size()); });
}

}  // namespace halfscope
