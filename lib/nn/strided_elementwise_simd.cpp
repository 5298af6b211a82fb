// Rows of combinations, compiled once per instruction set.
#include "lib/nn/strided_elementwise.hpp"
#include "lib/nn/strided_elementwise_element.hpp"

namespace halfscope {
namespace {

template <Combination combination, typename Rows>
HALFSCOPE_HD void loop(const Rows& rows, const float* a, const float* b, float* y) {
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const float* from_a = a + r * rows.strides[0];
    const float* from_b = b + r * rows.strides[1];
    float* to = y + r * rows.strides[2];
#pragma omp simd
    for (std::int64_t c = 0; c < rows.columns; ++c) to[c] = combined<combination>(from_a[c], from_b[c]);
  }
}

}  // namespace

template <Isa isa>
void ColumnLoops<isa>::combine(Combination combination, const Rows& rows, const float* a, const float* b,
                               float* y) {
  with_combination(combination, [&]<Combination known>() { loop<known>(rows, a, b, y); });
}

template struct ColumnLoops<target_isa>;

}  // namespace halfscope
