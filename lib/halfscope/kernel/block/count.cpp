// Counts of blocks with the instruction set in use.
#include <halfscope/kernel/block/detail/count.hpp>

#include <halfscope/kernel/block/detail/count_simd.hpp>

namespace halfscope {

void bring_to_scale(std::span<const float> values, const RowScales& row, std::int64_t column,
                    std::span<float> scaled, std::span<float> scales) {
  const ScaledSegment out{values.data(), scaled.data(), scales.data(), values.size()};
  dispatch_isa([&]<Isa isa>() { bring_to_scale_isa<isa>(row, column, out); });
}

ElementCounts count_elements(const ScaledRow& row, const ElementLimits& limits, std::span<float> known,
                             std::span<float> errors) {
  return dispatch_isa([&]<Isa isa>() {
    return count_isa<isa>(row, limits, ElementErrors{known.data(), errors.data()});
  });
}

}  // namespace halfscope
