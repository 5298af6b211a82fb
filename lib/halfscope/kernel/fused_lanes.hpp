// Fused multiply-adds of vectors, rounded once to any format; only for kernel/*.cpp, which are compiled once
// per instruction set.
#pragma once

#include <cmath>

#include <halfscope/kernel/round_lanes.hpp>
#include <halfscope/kernel/vector.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

#if !defined(__AVX512F__)
/// What rounding a double to a format needs; magnitudes as doubles, exponents as fields of doubles.
struct DoubleGrid {
  std::int64_t min_normal_field, places;
  double flush_below, max_finite, beyond;
};

DoubleGrid double_grid(const FloatFormat& format) {
  const RoundingGrid grid = rounding_grid({.format = format});
  return {format.min_exponent() + 1023, 52 - format.mantissa_bits, double{from_bits(grid.flush_below)},
          double{from_bits(grid.max_finite)}, double{from_bits(grid.beyond)}};
}

/// The one of the two doubles around sum + error that is sum + error, or else has an odd significand.
HALFSCOPE_HD double to_odd(double sum, double error) {
  const auto bits = __builtin_bit_cast(std::int64_t, sum);
  const bool inexact = (error > 0) | (error < 0);  // not where it is NaN
  const bool outward = (error > 0) == (sum > 0);
  const std::int64_t step = outward ? 1 : -1;
  return __builtin_bit_cast(double, bits + (inexact & ((bits & 1) == 0) ? step : 0));
}

/// a * b + c for floats: the product is exact, the sum to odd has bits to spare, and adding 1.5 * 2^k rounds
/// it.
HALFSCOPE_HD float fused_by_double(float a, float b, float c, const DoubleGrid& grid) {
  const double product = double{a} * double{b}, addend = double{c};
  const double sum = product + addend;
  const double addend_part = sum - product;
  const double error = (product - (sum - addend_part)) + (addend - addend_part);
  const double exact = to_odd(sum, error);
  const auto bits = __builtin_bit_cast(std::int64_t, exact);
  std::int64_t field = (bits >> 52) & 0x7FF;
  field = field > grid.min_normal_field ? field : grid.min_normal_field;
  field = field < 1700 ? field : 1700;  // beyond all sums of floats, and far from overflow
  const auto magic = __builtin_bit_cast(double, ((field + grid.places) << 52) | (std::int64_t{1} << 51));
  double result = (__builtin_fabs(exact) + magic) - magic;
  result = result < grid.flush_below ? 0.0 : result;
  result = result > grid.max_finite ? grid.beyond : result;
  return static_cast<float>(__builtin_copysign(result, exact));
}

/// c + a * b by way of doubles, for any format.
struct FuseByDouble {
  DoubleGrid grid;

  HALFSCOPE_HD Floats add_product(Floats c, Floats a, Floats b) const {
    float x[lanes], y[lanes], z[lanes];
    std::memcpy(x, &a, sizeof a);
    std::memcpy(y, &b, sizeof b);
    std::memcpy(z, &c, sizeof c);
#pragma omp simd
    for (std::size_t i = 0; i < lanes; ++i) z[i] = fused_by_double(x[i], y[i], z[i], grid);
    std::memcpy(&c, z, sizeof c);
    return c;
  }
};

#else
/// To odd in FP32, which any rounding to 22 significand bits or fewer takes for exact: of the results rounded
/// down and up, the smaller magnitude, with its last bit set where they differ.
HALFSCOPE_HD Floats fused_to_odd(Floats c, Floats a, Floats b) {
  const __m512i down = _mm512_castps_si512(_mm512_fmadd_round_ps(a, b, c, _MM_FROUND_TO_NEG_INF | 8));
  const __m512i up = _mm512_castps_si512(_mm512_fmadd_round_ps(a, b, c, _MM_FROUND_TO_POS_INF | 8));
  const __m512i inner = _mm512_maskz_min_epu32(0xFFFF, down, up);
  const __mmask16 inexact = _mm512_cmpneq_epi32_mask(down, up);
  return _mm512_castsi512_ps(_mm512_mask_or_epi32(inner, inexact, inner, _mm512_set1_epi32(1)));
}

/// For formats of at most 22 significand bits.
template <typename Round>
struct FuseByOdd {
  Round to;
  HALFSCOPE_HD Floats add_product(Floats c, Floats a, Floats b) const { return to(fused_to_odd(c, a, b)); }
};
#endif

#if defined(__FMA__)
/// The processor's own, for FP32.
struct FuseFp32 {
  HALFSCOPE_HD Floats add_product(Floats c, Floats a, Floats b) const {
#if defined(__AVX512F__)
    return _mm512_fmadd_ps(a, b, c);
#else
    return _mm256_fmadd_ps(a, b, c);
#endif
  }
};
#endif

}  // namespace
}  // namespace halfscope
