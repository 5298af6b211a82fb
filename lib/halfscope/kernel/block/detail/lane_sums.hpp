// Sums and counts in the lanes of vectors; only for *_simd.cpp, which are compiled once per instruction set.
#pragma once

#include <utility>

#include <halfscope/kernel/block/detail/segment.hpp>
#include <halfscope/kernel/detail/vector.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

constexpr std::size_t half_lanes = lanes / 2;
using Doubles [[gnu::vector_size(vector_bytes)]] = double;
using HalfFloats [[gnu::vector_size(vector_bytes / 2)]] = float;

/// Half of a vector in double precision.
HALFSCOPE_HD Doubles in_double(HalfFloats half) {
#if defined(__AVX512F__)  // GCC 12 converts quarters
  return _mm512_maskz_cvtps_pd(0xFF, half);
#else
  return __builtin_convertvector(half, Doubles);
#endif
}
template <std::size_t first, std::size_t... i>
HALFSCOPE_HD HalfFloats half_of(FloatVec x, std::index_sequence<i...> /*lanes*/) {
  return __builtin_shufflevector(x, x, static_cast<int>(first + i)...);
}
HALFSCOPE_HD HalfFloats load_half(const float* from) {
  HalfFloats half;
  std::memcpy(&half, from, sizeof half);
  return half;
}

/// c + a a: the square of a float is exact in double precision, so that fusing rounds as not fusing does.
HALFSCOPE_HD Doubles add_square(Doubles a, Doubles c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, a, c);
#elif defined(__FMA__)
  return _mm256_fmadd_pd(a, a, c);
#else
  return c + a * a;
#endif
}

/// Sums of squares in as many lanes as CosineSums has.
struct SquareLanes {
  static constexpr std::size_t count = ordinary_step, parts = count / half_lanes;
  Doubles sums[parts] = {};

  /// Adds the vector that begins with lane `first`.
  HALFSCOPE_HD void add(std::size_t first, FloatVec x) {
    constexpr auto half = std::make_index_sequence<half_lanes>{};
    add(first, half_of<0>(x, half), half_of<half_lanes>(x, half));
  }
  /// The same from memory, which needs no shuffle.
  HALFSCOPE_HD void add(std::size_t first, const float* x) {
    add(first, load_half(x), load_half(x + half_lanes));
  }
  HALFSCOPE_HD void add(std::size_t first, HalfFloats low, HalfFloats high) {
    Doubles* const to = sums + first / half_lanes;
    to[0] = add_square(in_double(low), to[0]);
    to[1] = add_square(in_double(high), to[1]);
  }
  HALFSCOPE_HD double sum() const {
    double lane[count];
    static_assert(sizeof lane == sizeof sums);
    std::memcpy(lane, sums, sizeof lane);
    double all = 0;
    for (std::size_t i = 0; i < count; ++i) all += lane[i];
    return all;
  }
};

/// Lanes in which a condition holds.
#if defined(__AVX512F__)
using Condition = __mmask16;
#else
using Condition = Ints;
#endif
HALFSCOPE_HD Condition is_zero(FloatVec x) {
#if defined(__AVX512F__)
  const auto bits = reinterpret_cast<__m512i>(x);
  return _mm512_testn_epi32_mask(bits, reinterpret_cast<__m512i>(all_lanes(~sign_bit)));
#else
  return x == 0.0f;
#endif
}
HALFSCOPE_HD Condition is_less(Ints x, Ints y) {
#if defined(__AVX512F__)
  return _mm512_cmplt_epi32_mask(reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(y));
#else
  return x < y;
#endif
}

/// How often a condition held in each lane.
struct LaneCounts {
  Ints counts{};

  HALFSCOPE_HD void add(Condition condition) {
#if defined(__AVX512F__)
    const auto before = reinterpret_cast<__m512i>(counts);
    counts = reinterpret_cast<Ints>(
        _mm512_mask_sub_epi32(before, condition, before, reinterpret_cast<__m512i>(all_lanes(~0u))));
#else
    counts = counts - condition;
#endif
  }
  HALFSCOPE_HD std::int64_t sum() const {
    std::int32_t lane[lanes], all = 0;
    std::memcpy(lane, &counts, sizeof lane);
#pragma omp simd reduction(+ : all)
    for (std::size_t i = 0; i < lanes; ++i) all += lane[i];
    return all;
  }
};

HALFSCOPE_HD std::uint32_t least_lane(Words words) {
  std::uint32_t lane[lanes], least = ~0u;
  std::memcpy(lane, &words, sizeof lane);
#pragma omp simd reduction(min : least)
  for (std::size_t i = 0; i < lanes; ++i) least = lane[i] < least ? lane[i] : least;
  return least;
}

/// The smallest magnitude of numbers that are not zero.
struct LeastMagnitude {
  Words less_one = ~Words{};  ///< that of a zero is the largest word

  HALFSCOPE_HD void add(Ints magnitude) {
    const Words x = as_words(magnitude) - 1;
    less_one = x < less_one ? x : less_one;
  }
  HALFSCOPE_HD bool is_below(std::uint32_t magnitude) const { return least_lane(less_one) < magnitude - 1; }
};

}  // namespace
}  // namespace halfscope
