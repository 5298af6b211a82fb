// The loop of the cosine's sums, compiled once per instruction set.
#include <halfscope/kernel/reduce/detail/cosine_simd.hpp>

namespace halfscope {
namespace {

constexpr std::size_t lanes = CosineSums::lanes;

void add_to_lane(float x, float q, CosineSums& sums) {
  const std::size_t lane = sums.next_lane;
  sums.xx.data()[lane] += double{x} * double{x};
  sums.xq.data()[lane] += double{x} * double{q};
  sums.qq.data()[lane] += double{q} * double{q};
  sums.next_lane = static_cast<std::uint32_t>((lane + 1) % lanes);
}

/// c + a b: the product of two floats is exact in double precision, so that fusing rounds as not fusing does.
double add_product(double a, double b, double c) {
  if constexpr (target_isa == Isa::baseline) return c + a * b;
  return __builtin_fma(a, b, c);
}

/// Whole rounds of the lanes, in arrays that stay in registers.
std::size_t add_rounds(const float* x, const float* q, std::size_t count, CosineSums& sums) {
  double xx[lanes], xq[lanes], qq[lanes];
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    xx[lane] = sums.xx.data()[lane];
    xq[lane] = sums.xq.data()[lane];
    qq[lane] = sums.qq.data()[lane];
  }
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
#pragma omp simd
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const double a = x[i + lane], b = q[i + lane];
      xx[lane] = add_product(a, a, xx[lane]);
      xq[lane] = add_product(a, b, xq[lane]);
      qq[lane] = add_product(b, b, qq[lane]);
    }
  }
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    sums.xx.data()[lane] = xx[lane];
    sums.xq.data()[lane] = xq[lane];
    sums.qq.data()[lane] = qq[lane];
  }
  return i;
}

}  // namespace

template <>
void cosine_sums_isa<target_isa>(const float* x, const float* q, std::size_t count, CosineSums& sums) {
  std::size_t i = 0;
  for (; i < count && sums.next_lane != 0; ++i) add_to_lane(x[i], q[i], sums);
  i += add_rounds(x + i, q + i, count - i, sums);
  for (; i < count; ++i) add_to_lane(x[i], q[i], sums);
}

}  // namespace halfscope
