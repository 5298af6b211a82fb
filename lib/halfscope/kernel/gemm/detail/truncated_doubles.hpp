// Vectors of doubles cut off toward zero, to integers and to floats; only for *_simd.cpp, which are compiled
// once per instruction set.
#pragma once

#include <limits>
#include <utility>

#include <halfscope/kernel/detail/vector.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

constexpr std::size_t half_lanes = lanes / 2;
using Doubles [[gnu::vector_size(vector_bytes)]] = double;
using Longs [[gnu::vector_size(vector_bytes)]] = std::int64_t;
using HalfFloats [[gnu::vector_size(vector_bytes / 2)]] = float;
using HalfInts [[gnu::vector_size(vector_bytes / 2)]] = std::int32_t;

template <std::size_t first, typename Half, typename Whole, std::size_t... i>
HALFSCOPE_HD Half half_of(Whole x, std::index_sequence<i...> /*lanes*/) {
  return __builtin_shufflevector(x, x, static_cast<int>(first + i)...);
}
/// Half `part` of a vector, in double precision. GCC 12 converts quarters where no instruction is named.
template <std::size_t part>
HALFSCOPE_HD Doubles half_in_double(FloatVec x) {
  const auto half = half_of<part * half_lanes, HalfFloats>(x, std::make_index_sequence<half_lanes>{});
#if defined(__AVX512F__)
  return _mm512_maskz_cvtps_pd(0xFF, half);
#else
  return __builtin_convertvector(half, Doubles);
#endif
}
/// 2^exponent for half `part` of the lanes; exponents are those of normal doubles.
template <std::size_t part>
HALFSCOPE_HD Doubles half_of_powers(Ints exponent) {
  const auto half =
      half_of<part * half_lanes, HalfInts>(exponent + 1023, std::make_index_sequence<half_lanes>{});
#if defined(__AVX512F__)
  const auto fields =
      reinterpret_cast<Longs>(_mm512_maskz_cvtepi32_epi64(0xFF, reinterpret_cast<__m256i>(half)));
#else
  const Longs fields = __builtin_convertvector(half, Longs);
#endif
  return reinterpret_cast<Doubles>(fields << 52);
}

HALFSCOPE_HD Doubles magnitude_of(Doubles x) {
  constexpr std::int64_t magnitude = std::numeric_limits<std::int64_t>::max();
  return reinterpret_cast<Doubles>(reinterpret_cast<Longs>(x) & (Longs{} + magnitude));
}

/// x without its fraction, for |x| < 2^51; with SSE2 alone under `RoundsTowardZero`.
HALFSCOPE_HD Doubles truncated(Doubles x) {
#if defined(__AVX512F__)
  return _mm512_maskz_roundscale_pd(0xFF, x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
  return _mm256_round_pd(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#else
  const Longs sign = reinterpret_cast<Longs>(x) & (Longs{} + std::numeric_limits<std::int64_t>::min());
  const Doubles place = reinterpret_cast<Doubles>(reinterpret_cast<Longs>(Doubles{} + 0x1p52) | sign);
  const Doubles whole = (x + place) - place;
#if defined(__SSE2__)
  return whole;
#else
  const Longs one = reinterpret_cast<Longs>(Doubles{} + 1.0) | sign;
  return whole - reinterpret_cast<Doubles>((magnitude_of(whole) > magnitude_of(x)) & one);
#endif
#endif
}

template <std::size_t... i>
HALFSCOPE_HD FloatVec joined(HalfFloats low, HalfFloats high, std::index_sequence<i...> /*lanes*/) {
  return __builtin_shufflevector(low, high, static_cast<int>(i)...);
}
/// A half as floats, cut off to 24 bits, under `RoundsTowardZero` where there is one.
HALFSCOPE_HD HalfFloats truncate_half(Doubles x) {
#if defined(__AVX512F__)
  return _mm512_maskz_cvt_roundpd_ps(0xFF, x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#elif defined(__SSE2__)
  return __builtin_convertvector(x, HalfFloats);
#else
  const HalfFloats nearest = __builtin_convertvector(x, HalfFloats);
  const Longs rounded_up = magnitude_of(__builtin_convertvector(nearest, Doubles)) > magnitude_of(x);
  return reinterpret_cast<HalfFloats>(reinterpret_cast<HalfInts>(nearest) +
                                      __builtin_convertvector(rounded_up, HalfInts));
#endif
}
/// Two halves as floats, cut off to 24 bits, under `RoundsTowardZero` where there is one.
HALFSCOPE_HD FloatVec truncate_to_floats(Doubles low, Doubles high) {
  return joined(truncate_half(low), truncate_half(high), std::make_index_sequence<lanes>{});
}

}  // namespace
}  // namespace halfscope
