// Counts of ordinary rows with the instruction set in use.
#include <halfscope/kernel/block/detail/ordinary_simd.hpp>

namespace halfscope {

OrdinaryCounts count_ordinary(const OrdinaryRow& row, const SegmentRounding& rounding, float normal,
                              const OrdinaryOutput& out) {
  return dispatch_isa([&]<Isa isa>() { return count_ordinary_isa<isa>(row, rounding, normal, out); });
}

NumberCounts count_numbers(std::span<const float> values) {
  return dispatch_isa([&]<Isa isa>() { return count_numbers_isa<isa>(values.data(), values.size()); });
}

std::int64_t count_from(const OrdinaryRow& row, ScaleStep step, float magnitude) {
  return dispatch_isa([&]<Isa isa>() { return count_from_isa<isa>(row, step, magnitude); });
}

void BinadePlanes::settle(std::span<std::int64_t, binades> counts) {
  if (groups == 0) return;
  dispatch_isa([&]<Isa isa>() { add_planes_isa<isa>(*this, counts.data()); });
  groups = 0;
  sums = {};
  waiting = {};
}

}  // namespace halfscope
