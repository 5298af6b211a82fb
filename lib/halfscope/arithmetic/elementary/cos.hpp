// The cosine over half a period, in double precision, for learning-rate schedules.
#pragma once

#include <halfscope/core/host_device.hpp>

namespace halfscope {

namespace detail {

/// 1 - z/(a (a+1)) (1 - z/((a+2) (a+3)) (1 - ...)) with z = x^2, `terms` deep: the Taylor series of cos x for
/// a = 1, of sin(x) / x for a = 2.
HALFSCOPE_HD constexpr double alternating_series(double z, int a, int terms) {
  double sum = 1;
  for (int k = a + 2 * (terms - 1); k >= a; k -= 2) sum = 1 - sum * z / (k * (k + 1));
  return sum;
}

}  // namespace detail

/// cos(x) for x in [0, pi], with an error below 2^-52; exactly 1 at 0 and -1 at the double next to pi.
[[nodiscard]] HALFSCOPE_HD constexpr double cos(double x) {
  constexpr double half_pi = 0x1.921fb54442d18p0, half_pi_rest = 0x1.1a62633145c07p-54;
  const double from_middle = (half_pi - x) + half_pi_rest;
  if (x < 0.75) return detail::alternating_series(x * x, 1, 10);
  if (x > 2.4) {
    const double from_end = (2 * half_pi - x) + 2 * half_pi_rest;
    return -detail::alternating_series(from_end * from_end, 1, 10);
  }
  return from_middle * detail::alternating_series(from_middle * from_middle, 2, 10);
}

}  // namespace halfscope
