// Loops over weight updates with the instruction set in use.
#include <halfscope/kernel/update/update_lanes.hpp>

#include <halfscope/kernel/update/detail/update_lanes_simd.hpp>

namespace halfscope {

void add_updates(std::span<const float> stored, std::span<const float> update, int mantissa_bits,
                 std::span<float> out) {
  dispatch_isa([&]<Isa isa>() {
    add_updates_isa<isa>(stored.data(), update.data(), mantissa_bits, out.data(), out.size());
  });
}

void count_updates(const UpdateArrays& arrays, UpdateLanes& counters) {
  dispatch_isa([&]<Isa isa>() { count_updates_isa<isa>(arrays, counters); });
}

std::size_t update_ratios(std::span<const float> weights, std::span<const float> updates,
                          std::span<float> out) {
  return dispatch_isa([&]<Isa isa>() {
    return update_ratios_isa<isa>(weights.data(), updates.data(), out.data(), out.size());
  });
}

}  // namespace halfscope
