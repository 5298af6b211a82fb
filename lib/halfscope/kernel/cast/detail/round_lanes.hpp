// Rounding of a vector between two operations; only for *_simd.cpp, which are compiled once per instruction
// set.
#pragma once

#include <cstddef>
#include <cstring>

#include <halfscope/format/round.hpp>

#if defined(__F16C__)
#include <immintrin.h>
#endif

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

template <typename V>
HALFSCOPE_HD V round_lanes(V v, const RoundingGrid& grid) {
  constexpr std::size_t count = sizeof(V) / sizeof(float);
  float x[count];
  std::memcpy(x, &v, sizeof v);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) x[i] = round_on_grid<Rounding::nearest_even>(x[i], grid);
  std::memcpy(&v, x, sizeof v);
  return v;
}

/// Whether the processor converts vectors of this size to FP16 and back.
#if defined(__AVX512F__)
template <typename V>
constexpr bool has_conversion = sizeof(V) == 64;
#elif defined(__F16C__)
template <typename V>
constexpr bool has_conversion = sizeof(V) == 32;
#else
template <typename V>
constexpr bool has_conversion = false;
#endif

/// `mode` is an immediate of the conversion: 0 to the nearest, 1 down, 2 up, 3 toward zero. A NaN may keep
/// its payload. Only where has_conversion.
template <int mode, typename V>
HALFSCOPE_HD V convert_to_half_and_back(V v) {
#if defined(__AVX512F__)
  // The masked forms, all lanes on: GCC 12 warns of an uninitialised value in the others (its bug 105593).
  const __mmask16 all = 0xFFFF;
  return _mm512_maskz_cvtph_ps(all, _mm512_maskz_cvtps_ph(all, v, mode | _MM_FROUND_NO_EXC));
#elif defined(__F16C__)
  return _mm256_cvtph_ps(_mm256_cvtps_ph(v, mode));
#else
  return v;
#endif
}

/// Nearest even to FP16 and back; a NaN may keep its payload.
template <typename V>
HALFSCOPE_HD V round_to_fp16(V v) {
  if constexpr (has_conversion<V>) {
    return convert_to_half_and_back<0>(v);
  } else {
    return round_lanes(v, rounding_grid({.format = {5, 10}}));
  }
}

struct Identity {
  template <typename V>
  HALFSCOPE_HD V operator()(V v) const {
    return v;
  }
};

struct RoundToFp16 {
  template <typename V>
  HALFSCOPE_HD V operator()(V v) const {
    return round_to_fp16(v);
  }
};

struct RoundTo {
  RoundingGrid grid;
  template <typename V>
  HALFSCOPE_HD V operator()(V v) const {
    return round_lanes(v, grid);
  }
};

}  // namespace
}  // namespace halfscope
