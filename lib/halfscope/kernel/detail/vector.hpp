// Vectors as wide as the instruction set has them; only for *_simd.cpp, which are compiled once for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <halfscope/core/host_device.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Unnamed: the types differ between instruction sets, so no two translation units may share them.
namespace halfscope {
namespace {

constexpr std::size_t vector_bytes = target_isa == Isa::avx512 ? 64 : target_isa == Isa::avx2 ? 32 : 16;
constexpr std::size_t lanes = vector_bytes / sizeof(float);

using FloatVec [[gnu::vector_size(vector_bytes)]] = float;
using Ints [[gnu::vector_size(vector_bytes)]] = std::int32_t;
using Words [[gnu::vector_size(vector_bytes)]] = std::uint32_t;

HALFSCOPE_HD Ints as_ints(FloatVec x) {
  return reinterpret_cast<Ints>(x);
}
/// Sums that may wrap are unsigned; comparisons are signed, since SSE2 and AVX2 have no others.
HALFSCOPE_HD Words as_words(Ints x) {
  return reinterpret_cast<Words>(x);
}
HALFSCOPE_HD Ints as_ints(Words x) {
  return reinterpret_cast<Ints>(x);
}
HALFSCOPE_HD FloatVec as_floats(Ints x) {
  return reinterpret_cast<FloatVec>(x);
}

HALFSCOPE_HD Ints all_lanes(std::uint32_t value) {
  return Ints{} + static_cast<std::int32_t>(value);
}
/// x - 0 is x for every x, so that this is a broadcast and nothing else; 0 + x would be an addition.
HALFSCOPE_HD FloatVec all_lanes(float value) {
  return value - FloatVec{};
}

HALFSCOPE_HD FloatVec load(const float* from) {
  FloatVec x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
HALFSCOPE_HD void store(float* to, FloatVec x) {
  std::memcpy(to, &x, sizeof x);
}

#if defined(__F16C__)
/// The numbers of as many FP16 codes, without alignment; signalling NaNs become quiet.
HALFSCOPE_HD FloatVec load_fp16(const void* codes) {
#if defined(__AVX512F__)
  __m256i x;
  std::memcpy(&x, codes, sizeof x);
  return _mm512_maskz_cvtph_ps(0xFFFF, x);
#else
  __m128i x;
  std::memcpy(&x, codes, sizeof x);
  return _mm256_cvtph_ps(x);
#endif
}
#endif

/// Each lane, or the one NaN: `with_one_nan` of a float.
HALFSCOPE_HD FloatVec with_one_nan(FloatVec x) {
  return as_floats(x == x ? as_ints(x) : all_lanes(quiet_nan_bits));
}

/// A number times each lane. AVX-512 multiplies by a number in memory at no cost, but GCC likes to load it
/// first and to spread it over the lanes by an operation of its own.
HALFSCOPE_HD FloatVec times_lanes(const float* number, FloatVec x) {
#if defined(__AVX512F__)
  FloatVec product;
  asm("vmulps %1%{1to16%}, %2, %0" : "=v"(product) : "m"(*number), "v"(x));
  return product;
#else
  return all_lanes(*number) * x;
#endif
}

HALFSCOPE_HD Ints larger(Ints x, Ints y) {
  return x > y ? x : y;
}
HALFSCOPE_HD bool any_negative(Ints x) {
#if defined(__AVX512DQ__)
  return _mm512_movepi32_mask(reinterpret_cast<__m512i>(x)) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_ps(reinterpret_cast<__m256>(x)) != 0;
#else
  std::int32_t all = 0;
  for (std::size_t i = 0; i < lanes; ++i) all |= x[i];
  return all < 0;
#endif
}
HALFSCOPE_HD Ints magnitude_of(FloatVec x) {
  return as_ints(x) & 0x7FFFFFFF;
}
/// Whether any of these magnitudes is that of an infinity or NaN.
HALFSCOPE_HD bool any_special(Ints magnitudes) {
  return any_negative(static_cast<std::int32_t>(infinity_bits) - 1 - magnitudes);
}

#if defined(__FMA__)
HALFSCOPE_HD FloatVec fused(FloatVec a, FloatVec b, FloatVec c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#else
  return _mm256_fmadd_ps(a, b, c);
#endif
}
/// c - a b
HALFSCOPE_HD FloatVec fused_less(FloatVec a, FloatVec b, FloatVec c) {
#if defined(__AVX512F__)
  return _mm512_fnmadd_ps(a, b, c);
#else
  return _mm256_fnmadd_ps(a, b, c);
#endif
}

/// a b - c
HALFSCOPE_HD FloatVec fused_minus(FloatVec a, FloatVec b, FloatVec c) {
#if defined(__AVX512F__)
  return _mm512_fmsub_ps(a, b, c);
#else
  return _mm256_fmsub_ps(a, b, c);
#endif
}
#endif

/// The first `count` lanes of a vector, up to all; the others are read as zeros.
HALFSCOPE_HD FloatVec load_some(const float* from, std::size_t count) {
  if (count == lanes) return load(from);
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1u), from);
#else
  FloatVec x{};
  for (std::size_t i = 0; i < count; ++i) x[i] = from[i];
  return x;
#endif
}
HALFSCOPE_HD void store_some(float* to, FloatVec x, std::size_t count) {
  if (count == lanes) return store(to, x);
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1u), x);
#else
  for (std::size_t i = 0; i < count; ++i) to[i] = x[i];
#endif
}

/// out[i] = function(in[i]) in whole vectors; the last, incomplete one goes through a buffer.
template <typename Function>
HALFSCOPE_HD void map_vectors(const float* in, float* out, std::size_t count, Function function) {
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) store(out + i, function(load(in + i)));
  if (i == count) return;
  float rest[lanes] = {};
  std::memcpy(rest, in + i, (count - i) * sizeof(float));
  store(rest, function(load(rest)));
  std::memcpy(out + i, rest, (count - i) * sizeof(float));
}

}  // namespace
}  // namespace halfscope
