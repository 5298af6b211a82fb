// Sums of products rounded to FP16 by additions alone, which hold unless something overflows; only for
// kernel/*.cpp, which are compiled once per instruction set.
#pragma once

#include <halfscope/kernel/vector.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

#if defined(__FMA__)
HALFSCOPE_HD Floats fused(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#else
  return _mm256_fmadd_ps(a, b, c);
#endif
}
/// c - a b
HALFSCOPE_HD Floats fused_less(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
  return _mm512_fnmadd_ps(a, b, c);
#else
  return _mm256_fnmadd_ps(a, b, c);
#endif
}

/// Sums and one factor are kept times 2^100. Then what rounds numbers from 2^15 on is beyond all floats: they
/// become infinite or NaN, and stay that until the end, where it is seen.
constexpr float fp16_scale = 0x1p100f;

/// x, scaled, rounded to the places that FP16 has in this binade, a power of two: adding 1.5 * 2^13 of it
/// cuts off all that lies below 2^-10 of it. The sign of zeros is lost.
HALFSCOPE_HD Floats round_in_binade(Floats x, Floats binade) {
  const Floats to_magic = all_lanes(12288.0f);
  return fused_less(binade, to_magic, fused(binade, to_magic, x));
}

/// Product and sum rounded one after the other. Sums of FP16 numbers have no places below FP16's smallest, so
/// that only products see the subnormal numbers' binade; zeros of either sign add up to +0.
struct ScaledInTurn {
  static constexpr float scale = fp16_scale;

  HALFSCOPE_HD Floats add_product(Floats c, Floats a, Floats b) const {
    const Floats product = a * b;
    const Ints subnormal = as_ints(all_lanes(0x1p-14f * scale)), binade = as_ints(product) & 0x7F800000;
    const Floats addend = round_in_binade(product, as_floats(binade > subnormal ? binade : subnormal));
    const Floats sum = c + addend;
    return round_in_binade(sum, as_floats(as_ints(sum) & static_cast<std::int32_t>(0xFF800000u)));
  }

  /// Whether no sum or product was beyond the range that is rounded this way.
  HALFSCOPE_HD static bool holds(Floats sum) {
    const Floats nan_unless_finite = sum - sum;
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask(nan_unless_finite, nan_unless_finite, _CMP_UNORD_Q) == 0;
#else
    return _mm256_movemask_ps(_mm256_cmp_ps(nan_unless_finite, nan_unless_finite, _CMP_UNORD_Q)) == 0;
#endif
  }
};
#endif

}  // namespace
}  // namespace halfscope
