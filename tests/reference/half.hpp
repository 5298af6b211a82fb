// FP16 results by the processor's own rounding of doubles: fast enough for all pairs of operands.
#pragma once

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include <halfscope/format/quantizer.hpp>

namespace halfscope::reference {

/// Sets the processor's rounding for as long as it lives.
class ProcessorRounding {
 public:
  explicit ProcessorRounding(Rounding rounding) : before_(std::fegetround()) {
    std::fesetround(rounding == Rounding::up            ? FE_UPWARD
                    : rounding == Rounding::down        ? FE_DOWNWARD
                    : rounding == Rounding::toward_zero ? FE_TOWARDZERO
                                                        : FE_TONEAREST);
  }
  ProcessorRounding(const ProcessorRounding&) = delete;
  ProcessorRounding& operator=(const ProcessorRounding&) = delete;
  ~ProcessorRounding() { std::fesetround(before_); }

 private:
  int before_;
};

/// `x` on a grid of 11 significand bits down to `lowest` as the smallest exponent: adding 1.5 * 2^52 grid
/// steps leaves the processor no room for further bits.
[[gnu::always_inline]] inline double on_half_grid(double x, int lowest) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  int exponent = static_cast<int>((bits >> 52) & 0x7FF) - 1023;
  if (exponent < lowest) exponent = lowest;
  bits = (static_cast<std::uint64_t>(exponent - 10 + 52 + 1023) << 52) | (std::uint64_t{1} << 51);
  double big;
  std::memcpy(&big, &bits, sizeof big);
  return (x + big) - big;
}

struct HalfAnswer {
  double value;
  unsigned flags;
};

/// `x` as FP16 under `rounding`, in which the processor must be too; toward zero, x >= 0 is rounded down.
[[gnu::always_inline]] inline HalfAnswer to_half(double x, Rounding rounding) {
  if (x == 0 || !(std::abs(x) < std::numeric_limits<double>::infinity())) return {x, 0};
  const bool by_magnitude = rounding == Rounding::toward_zero;
  const double given = by_magnitude ? std::abs(x) : x;
  const double rounded = std::copysign(on_half_grid(given, -14), x);
  if (std::abs(rounded) > 65504) {
    const bool inward =
        by_magnitude || (rounding == Rounding::up && x < 0) || (rounding == Rounding::down && x > 0);
    return {std::copysign(inward ? 65504 : std::numeric_limits<double>::infinity(), x), 4 | 1};
  }
  if (rounded == x) return {rounded, 0};
  if (std::abs(x) >= 0x1p-14) return {rounded, 1};
  const bool tiny = std::abs(on_half_grid(given, -1000)) < 0x1p-14;
  return {rounded, tiny ? 3u : 1u};
}

}  // namespace halfscope::reference
