// Fused multiply-adds of vectors, rounded once to any format; only for *_simd.cpp, which are compiled once
// per instruction set.
#pragma once

#include <limits>

#include <halfscope/kernel/cast/detail/round_lanes.hpp>
#include <halfscope/kernel/detail/vector.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

#if !defined(__AVX512F__)
using Doubles [[gnu::vector_size(vector_bytes)]] = double;
using Longs [[gnu::vector_size(vector_bytes)]] = std::int64_t;

/// Constants for rounding a double to a format.
struct DoubleGrid {
  double min_normal, to_magic, flush_below, max_finite, beyond;
};

DoubleGrid double_grid(const FloatFormat& format) {
  const RoundingGrid grid = rounding_grid({.format = format});
  const auto places = static_cast<std::int64_t>(52 - format.mantissa_bits);
  return {double{from_bits(grid.min_normal_field << 23)},
          1.5 * static_cast<double>(std::int64_t{1} << places), double{from_bits(grid.flush_below)},
          double{from_bits(grid.max_finite)}, double{from_bits(grid.beyond)}};
}

/// The one of the two doubles around sum + error that is sum + error, or else has an odd significand. A NaN
/// for an error counts as none.
HALFSCOPE_HD Longs to_odd(Doubles sum, Doubles error) {
  const Longs inexact = (error > 0) | (error < 0), inward = (error > 0) ^ (sum > 0);
  return (reinterpret_cast<Longs>(sum) + (inexact & inward)) | (inexact & 1);
}

/// a * b + c for floats: the product is exact, and the sum to odd has bits to spare.
HALFSCOPE_HD Longs fused_to_odd(Doubles a, Doubles b, Doubles c) {
  const Doubles product = a * b;
  const Doubles sum = product + c;
  const Doubles c_part = sum - product;
  return to_odd(sum, (product - (sum - c_part)) + (c - c_part));
}

/// The same rounded to a format by adding 1.5 * 2^k.
HALFSCOPE_HD Doubles fused_by_double(Doubles a, Doubles b, Doubles c, const DoubleGrid& grid) {
  const Longs exact = fused_to_odd(a, b, c);
  const Longs sign = Longs{} + std::numeric_limits<std::int64_t>::min();
  Doubles binade = reinterpret_cast<Doubles>(exact & (Longs{} + (std::int64_t{0x7FF} << 52)));
  binade = binade > grid.min_normal ? binade : Doubles{} + grid.min_normal;
  binade = binade < 0x1p700 ? binade : Doubles{} + 0x1p700;  // beyond all sums of floats, and finite
  const Doubles magic = binade * grid.to_magic;
  Doubles result = (reinterpret_cast<Doubles>(exact & ~sign) + magic) - magic;
  result = result < grid.flush_below ? Doubles{} : result;
  result = result > grid.max_finite ? Doubles{} + grid.beyond : result;
  return reinterpret_cast<Doubles>(reinterpret_cast<Longs>(result) | (exact & sign));
}

/// The halves of a vector as doubles, and back.
struct Halves {
  Doubles lower, upper;
};
HALFSCOPE_HD Halves widen(FloatVec x) {
#if defined(__AVX2__)
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(x)), _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
#elif defined(__SSE2__)
  return {_mm_cvtps_pd(x), _mm_cvtps_pd(_mm_movehl_ps(x, x))};
#else
  return {Doubles{double{x[0]}, double{x[1]}}, Doubles{double{x[2]}, double{x[3]}}};
#endif
}
HALFSCOPE_HD FloatVec narrow(const Halves& x) {
#if defined(__AVX2__)
  return _mm256_set_m128(_mm256_cvtpd_ps(x.upper), _mm256_cvtpd_ps(x.lower));
#elif defined(__SSE2__)
  return _mm_movelh_ps(_mm_cvtpd_ps(x.lower), _mm_cvtpd_ps(x.upper));
#else
  return FloatVec{static_cast<float>(x.lower[0]), static_cast<float>(x.lower[1]),
                  static_cast<float>(x.upper[0]), static_cast<float>(x.upper[1])};
#endif
}

/// c + a * b by way of doubles, for any format.
struct FuseByDouble {
  DoubleGrid grid;

  HALFSCOPE_HD FloatVec add_product(FloatVec c, FloatVec a, FloatVec b) const {
    const Halves x = widen(a), y = widen(b), z = widen(c);
    return narrow(
        {fused_by_double(x.lower, y.lower, z.lower, grid), fused_by_double(x.upper, y.upper, z.upper, grid)});
  }
};

#if !defined(__FMA__)
/// The same for FP32, to which the conversion rounds.
struct FuseFp32 {
  HALFSCOPE_HD FloatVec add_product(FloatVec c, FloatVec a, FloatVec b) const {
    const Halves x = widen(a), y = widen(b), z = widen(c);
    return narrow({reinterpret_cast<Doubles>(fused_to_odd(x.lower, y.lower, z.lower)),
                   reinterpret_cast<Doubles>(fused_to_odd(x.upper, y.upper, z.upper))});
  }
};
#endif

#else
/// To odd in FP32, which any rounding to 22 significand bits or fewer takes for exact: of the results rounded
/// down and up, which are neighbours unless they are equal, the odd one.
HALFSCOPE_HD FloatVec fused_to_odd(FloatVec c, FloatVec a, FloatVec b) {
  const __m512i down = _mm512_castps_si512(_mm512_fmadd_round_ps(a, b, c, _MM_FROUND_TO_NEG_INF | 8));
  const __m512i up = _mm512_castps_si512(_mm512_fmadd_round_ps(a, b, c, _MM_FROUND_TO_POS_INF | 8));
  const __mmask16 down_is_odd = _mm512_test_epi32_mask(down, _mm512_set1_epi32(1));
  return _mm512_castsi512_ps(_mm512_mask_mov_epi32(up, down_is_odd, down));
}

/// For formats of at most 22 significand bits.
template <typename Round>
struct FuseByOdd {
  Round to;
  HALFSCOPE_HD FloatVec add_product(FloatVec c, FloatVec a, FloatVec b) const {
    return to(fused_to_odd(c, a, b));
  }
};
#endif

#if defined(__FMA__)
/// The processor's own, for FP32.
struct FuseFp32 {
  HALFSCOPE_HD FloatVec add_product(FloatVec c, FloatVec a, FloatVec b) const { return fused(a, b, c); }
};
#endif

}  // namespace
}  // namespace halfscope
