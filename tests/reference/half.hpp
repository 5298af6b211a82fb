// Results of 16-bit formats by the processor's own rounding of doubles, many at a time: fast enough for all
// pairs of operands.
#pragma once

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include <halfscope/core/isa.hpp>
#include <halfscope/format/quantizer.hpp>

#include "tests/reference/rounding.hpp"

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

/// A format with infinities and at most 11 significand bits, and a rounding that processors have.
struct ProcessorGrid {
  std::int64_t mantissa_bits, min_exponent;
  double min_normal, max_finite, positive_overflow, negative_overflow;
  bool by_magnitude;  ///< toward zero, |x| is rounded down

  explicit ProcessorGrid(const Quantizer& q)
      : mantissa_bits(q.format.mantissa_bits),
        min_exponent(std::ilogb(limits(q.format).min_normal)),
        min_normal(limits(q.format).min_normal),
        max_finite(limits(q.format).max_finite),
        positive_overflow(overflows_outward(q.rounding, false) ? INFINITY : max_finite),
        negative_overflow(overflows_outward(q.rounding, true) ? INFINITY : max_finite),
        by_magnitude(q.rounding == Rounding::toward_zero) {}
};

/// `x` with the grid's significand bits, down to `lowest` as the smallest exponent: adding 1.5 * 2^52 grid
/// steps leaves the processor no room for further bits.
[[gnu::always_inline]] inline double on_grid(double x, std::int64_t lowest, const ProcessorGrid& grid) {
  std::int64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  std::int64_t exponent = ((bits >> 52) & 0x7FF) - 1023;
  exponent = exponent < lowest ? lowest : exponent;
  bits = ((exponent - grid.mantissa_bits + 52 + 1023) << 52) | (std::int64_t{1} << 51);
  double big;
  std::memcpy(&big, &bits, sizeof big);
  return (x + big) - big;
}

struct GridAnswer {
  double value;
  std::int64_t flags;
};

/// The finite `x` rounded; the processor must be in the same rounding.
[[gnu::always_inline]] inline GridAnswer to_grid(double x, const ProcessorGrid& grid) {
  const double given = grid.by_magnitude ? std::abs(x) : x;
  const double rounded = std::copysign(on_grid(given, grid.min_exponent, grid), x);
  const bool tiny = (std::abs(on_grid(given, -1000, grid)) < grid.min_normal) & (x != 0);
  const bool overflows = std::abs(rounded) > grid.max_finite;
  const double overflow = std::copysign(x < 0 ? grid.negative_overflow : grid.positive_overflow, x);
  const std::int64_t inexact = tiny ? 3 : 1;
  return {overflows ? overflow : rounded, overflows ? 5 : rounded == x ? 0 : inexact};
}

/// The bits of values[i] and its flags, for the finite results[i] of an operation.
[[gnu::always_inline]] inline void to_grid_loop(const double* results, std::size_t count,
                                                const ProcessorGrid& shared_grid, float* values,
                                                std::uint8_t* flags) {
  const ProcessorGrid grid = shared_grid;
  for (std::size_t i = 0; i < count; ++i) {
    const GridAnswer answer = to_grid(results[i], grid);
    values[i] = static_cast<float>(answer.value);
    flags[i] = static_cast<std::uint8_t>(answer.flags);
  }
}

inline void to_grid_baseline(const double* results, std::size_t count, const ProcessorGrid& grid,
                             float* values, std::uint8_t* flags) {
  to_grid_loop(results, count, grid, values, flags);
}

#if defined(__x86_64__)
[[gnu::target("avx512f,avx512dq,avx512bw,avx512vl")]] inline void to_grid_avx512(
    const double* results, std::size_t count, const ProcessorGrid& grid, float* values, std::uint8_t* flags) {
  to_grid_loop(results, count, grid, values, flags);
}
#endif

/// The same for arrays, in wide vectors where the processor has them: these tests take minutes.
inline void to_grid(const double* results, std::size_t count, const ProcessorGrid& grid, float* values,
                    std::uint8_t* flags) {
#if defined(__x86_64__)
  if (available_isas().size() > 2) return to_grid_avx512(results, count, grid, values, flags);
#endif
  to_grid_baseline(results, count, grid, values, flags);
}

}  // namespace halfscope::reference
