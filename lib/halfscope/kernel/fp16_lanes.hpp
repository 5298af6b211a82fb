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
/// become infinite or NaN, and stay that until the end, where `holds` sees it.
constexpr float fp16_scale = 0x1p100f;

/// x, scaled, rounded to the places that FP16 has in this binade, a power of two: adding 1.5 * 2^13 of it
/// cuts off all that lies below 2^-10 of it. The sign of zeros is lost.
HALFSCOPE_HD Floats round_in_binade(Floats x, Floats binade) {
  const Floats to_magic = all_lanes(12288.0f);
  return fused_less(binade, to_magic, fused(binade, to_magic, x));
}
/// The binade of x, or that of FP16's subnormal numbers.
HALFSCOPE_HD Floats fp16_binade(Floats x) {
  const Ints smallest = as_ints(all_lanes(0x1p-14f * fp16_scale)), binade = as_ints(x) & 0x7F800000;
  return as_floats(binade > smallest ? binade : smallest);
}

/// Whether no sum was beyond the range that is rounded this way.
HALFSCOPE_HD bool all_finite(Floats x) {
  const Floats difference = x - x;
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(difference, difference, _CMP_UNORD_Q) == 0;
#else
  return _mm256_movemask_ps(_mm256_cmp_ps(difference, difference, _CMP_UNORD_Q)) == 0;
#endif
}

/// Product and sum rounded one after the other. Sums of FP16 numbers have no places below FP16's smallest,
/// and zeros of either sign add up to +0.
struct ScaledInTurn {
  static constexpr float scale = fp16_scale;
  HALFSCOPE_HD Floats add_product(Floats c, Floats a, Floats b) const {
    const Floats product = a * b;
    const Floats sum = c + round_in_binade(product, fp16_binade(product));
    return round_in_binade(sum, as_floats(as_ints(sum) & static_cast<std::int32_t>(0xFF800000u)));
  }
  HALFSCOPE_HD static bool holds(Floats sum) { return all_finite(sum); }
};
#endif

#if defined(__AVX512F__)
/// Rounded once: of the FP32 sums rounded down and up, the odd one is rounded to FP16. A sum of zero may have
/// lost its sign.
struct ScaledFused {
  static constexpr float scale = fp16_scale;
  HALFSCOPE_HD Floats add_product(Floats c, Floats a, Floats b) const {
    const __m512i down = _mm512_castps_si512(_mm512_fmadd_round_ps(a, b, c, _MM_FROUND_TO_NEG_INF | 8));
    const __m512i up = _mm512_castps_si512(_mm512_fmadd_round_ps(a, b, c, _MM_FROUND_TO_POS_INF | 8));
    const __mmask16 down_is_odd = _mm512_test_epi32_mask(down, _mm512_set1_epi32(1));
    const Floats odd = _mm512_castsi512_ps(_mm512_mask_mov_epi32(up, down_is_odd, down));
    return round_in_binade(odd, fp16_binade(odd));
  }
  HALFSCOPE_HD static bool holds(Floats sum) {
    return all_finite(sum) && _mm512_cmp_ps_mask(sum, Floats{}, _CMP_EQ_OQ) == 0;
  }
};
#endif

}  // namespace
}  // namespace halfscope
