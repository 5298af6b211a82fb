// Sums of products rounded to 11 significand bits or fewer by the rounding of FP32 operations, in fast ways
// that are not valid for all numbers, and tell where they were not; only for *_simd.cpp, which are compiled
// once per instruction set.
//
// Nearest even to 11 significand bits: 8191 x lies 13 binades above x, so that FP32 rounds it to where x has
// its 11th bit. 8192 x has no places below that one, and 8192 x - rounded(8191 x) is x, rounded there:
// exactly, with the same ties. Where 8191 x lies in the binade below, x is so close to a power of two that
// one more place makes no difference. A larger factor rounds to fewer bits.
#pragma once

#include <halfscope/kernel/detail/vector.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

/// A tile of sums.
template <std::size_t rows, std::size_t vectors>
using Sums = FloatVec[rows][vectors];

template <std::size_t rows, std::size_t vectors>
HALFSCOPE_HD Ints largest_magnitudes(const Sums<rows, vectors>& sums) {
  Ints largest{};
  for (const auto& row : sums) {
    for (const FloatVec& sum : row) largest = larger(largest, magnitude_of(sum));
  }
  return largest;
}

#if defined(__FMA__)
/// Product and sum rounded one after the other, to a format of at most 11 significand bits. Sums are kept
/// times a power of two: then `factor` times all that the format may not hold, numbers of its highest binade
/// on, is beyond FP32, and sums become infinite or NaN and stay that until it is seen. Zeros of either sign
/// add up to +0.
class FastMulThenAdd {
 public:
  static constexpr std::size_t terms = 256;  ///< at most, after which it is seen whether the sums are valid
  float scale;

  [[nodiscard]] static bool has(const FloatFormat& format) {
    return format.mantissa_bits <= 10 && format.subnormals == Subnormals::gradual;
  }

  explicit FastMulThenAdd(const FloatFormat& format) {
    const int places = 23 - format.mantissa_bits, headroom = 128 - places - format.max_exponent();
    scale = power(headroom > 0 ? headroom : 0);
    factor_ = power(places);
    min_normal_ = power(format.min_exponent()) * scale;
    least_place_ = 1.5f * factor_ * min_normal_;
  }

  /// Sums of a format's numbers have no places below its smallest: only products may come to subnormal
  /// numbers.
  HALFSCOPE_HD FloatVec add_product(FloatVec c, FloatVec a, FloatVec b) const {
    const FloatVec sum = c + rounded_product(a * b);
    return fused_minus(sum, all_lanes(factor_), sum * all_lanes(factor_ - 1));
  }

  template <std::size_t rows, std::size_t vectors>
  HALFSCOPE_HD bool valid(const Sums<rows, vectors>& sums) const {
    return !any_special(largest_magnitudes(sums));
  }

 private:
  float factor_;       ///< 2^places
  float min_normal_;   ///< times the scale
  float least_place_;  ///< times the scale: a number whose last place is the format's smallest number

  static float power(int exponent) { return from_bits(static_cast<std::uint32_t>(exponent + 127) << 23); }

  HALFSCOPE_HD FloatVec rounded_product(FloatVec x) const {
#if defined(__AVX512DQ__)
    constexpr int larger_magnitude = 3;
    const FloatVec above = _mm512_range_ps(x * all_lanes(factor_), all_lanes(least_place_), larger_magnitude);
    return above - (above - x);
#else
    // Adding 1.5 times the factor of x's binade, or of that of subnormal numbers, cuts off what lies below.
    const Ints subnormal = as_ints(all_lanes(min_normal_)), binade = as_ints(x) & 0x7F800000;
    const FloatVec unit = as_floats(binade > subnormal ? binade : subnormal),
                   places = all_lanes(1.5f * factor_);
    return fused_less(unit, places, fused(unit, places, x));
#endif
  }
};

/// Product and add rounded once. Sums are kept times 2^15: then those that come to FP16's subnormal numbers,
/// which have fewer places, and zeros are those below 2, without the highest bit of the exponent.
struct FastFused {
  static constexpr float scale = 0x1p15f;
  static constexpr std::size_t terms = 8;  ///< since now and then a sum is close to zero
  /// To what the products of 256 terms may add up. With as much before, no sum overflows, and rounding makes
  /// that larger by (1 + 2^-12)^256 at most.
  static constexpr float most_added = 0x1p14f;
#if defined(__AVX512F__)
  static constexpr bool needs_fp16 = false;
#else
  static constexpr bool needs_fp16 = true;  ///< products that FP32 holds
#endif

  Ints normal = all_lanes(0xFFFFFFFFu);  ///< the bits that all sums had

  template <std::size_t rows, std::size_t vectors>
  HALFSCOPE_HD static bool can_start(const Sums<rows, vectors>& sums) {
    return !any_negative(as_ints(all_lanes(most_added)) - largest_magnitudes(sums));
  }

  template <std::size_t vectors>
  HALFSCOPE_HD void add_row(FloatVec (&sums)[vectors], FloatVec a, const FloatVec (&b)[vectors]) {
    for (std::size_t j = 0; j < vectors; ++j) sums[j] = sum_of(sums[j], a, b[j], j % 2 == 0);
  }

  template <std::size_t rows, std::size_t vectors>
  HALFSCOPE_HD bool valid(const Sums<rows, vectors>&) const {
    return !any_negative(~as_ints(as_words(normal) << 1));
  }

 private:
#if defined(__AVX512F__)
  /// FP32 rounds the exact sum down and up; halfway between the two lies a number on the same side of every
  /// tie as the sum, and 8191 times it is 8191.5 times the one less half the other. The last step is an
  /// addition in every other vector, so that adders and multipliers are both busy.
  HALFSCOPE_HD FloatVec sum_of(FloatVec c, FloatVec a, FloatVec b, bool by_adding) {
    constexpr int down = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC,
                  up = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;
    const FloatVec below = _mm512_fmadd_round_ps(a, b, c, down), above = _mm512_fmadd_round_ps(a, b, c, up);
    normal &= as_ints(below);
    const FloatVec rest = fused_minus(below, all_lanes(8191.5f), scaled(above, -1));
    return by_adding ? scaled(below, 13) - rest : fused_minus(below, all_lanes(8192.0f), rest);
  }

  /// x 2^power by its exponent alone, for numbers that are not zero; it leaves the multipliers to others.
  HALFSCOPE_HD static FloatVec scaled(FloatVec x, int power) {
    return as_floats(as_ints(as_words(as_ints(x)) + (static_cast<std::uint32_t>(power) << 23)));
  }
#else
  /// The sum and what FP32 rounded off it are exact together (Knuth's TwoSum), and 8191 times both is what an
  /// FMA rounds once.
  HALFSCOPE_HD FloatVec sum_of(FloatVec c, FloatVec a, FloatVec b, bool) {
    const FloatVec sum = fused(a, b, c), product_part = sum - c;
    const FloatVec error = fused_minus(a, b, product_part) + (c - (sum - product_part));
    normal &= as_ints(sum);
    return fused_minus(sum, all_lanes(8192.0f), fused_minus(sum, all_lanes(8191.0f), error));
  }
#endif
};
#endif

}  // namespace
}  // namespace halfscope
