// Operations of vectors that blocks need beside those of every kernel; only for *_simd.cpp, which are
// compiled once per instruction set.
#pragma once

#include <halfscope/kernel/detail/vector.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

using FourInts [[gnu::vector_size(16)]] = std::int32_t;

HALFSCOPE_HD FourInts larger_ones(FourInts x, FourInts y) {
  return x > y ? x : y;
}
/// The larger ones of a vector's quarters, of its halves, or the vector.
HALFSCOPE_HD FourInts quartered(Ints x) {
#if defined(__AVX512F__)
  using EightInts [[gnu::vector_size(32)]] = std::int32_t;
  const EightInts low = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7),
                  high = __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
  const EightInts half = low > high ? low : high;
#elif defined(__AVX2__)
  const Ints half = x;
#endif
#if defined(__AVX2__)
  return larger_ones(__builtin_shufflevector(half, half, 0, 1, 2, 3),
                     __builtin_shufflevector(half, half, 4, 5, 6, 7));
#else
  return x;
#endif
}
HALFSCOPE_HD std::int32_t largest_of_four(FourInts x) {
  const FourInts two = larger_ones(x, __builtin_shufflevector(x, x, 2, 3, 0, 1));
  return larger_ones(two, __builtin_shufflevector(two, two, 1, 0, 3, 2))[0];
}
HALFSCOPE_HD bool any_of_four_negative(FourInts x) {
#if defined(__SSE2__)
  return _mm_movemask_ps(reinterpret_cast<__m128>(x)) != 0;
#else
  return (x[0] | x[1] | x[2] | x[3]) < 0;
#endif
}
/// In each quarter of 128 bits, the lower and the higher two lanes of both, taken in turn.
HALFSCOPE_HD Ints low_in_turn(Ints x, Ints y) {
#if defined(__AVX512F__)
  return reinterpret_cast<Ints>(
      _mm512_maskz_unpacklo_epi32(0xFFFF, reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(y)));
#elif defined(__AVX2__)
  return reinterpret_cast<Ints>(
      _mm256_unpacklo_epi32(reinterpret_cast<__m256i>(x), reinterpret_cast<__m256i>(y)));
#else
  return __builtin_shufflevector(x, y, 0, 4, 1, 5);
#endif
}
HALFSCOPE_HD Ints high_in_turn(Ints x, Ints y) {
#if defined(__AVX512F__)
  return reinterpret_cast<Ints>(
      _mm512_maskz_unpackhi_epi32(0xFFFF, reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(y)));
#elif defined(__AVX2__)
  return reinterpret_cast<Ints>(
      _mm256_unpackhi_epi32(reinterpret_cast<__m256i>(x), reinterpret_cast<__m256i>(y)));
#else
  return __builtin_shufflevector(x, y, 2, 6, 3, 7);
#endif
}
/// The largest number of each of four vectors: of its even and odd pairs of lanes, then of both.
HALFSCOPE_HD FourInts largest_of_each(const Ints (&x)[4]) {
  const auto in_pairs = [](Ints a, Ints b) __attribute__((always_inline)) {
    return larger(low_in_turn(a, b), high_in_turn(a, b));
  };
  const Ints even = in_pairs(x[0], x[2]), odd = in_pairs(x[1], x[3]);
  return quartered(in_pairs(even, odd));
}

HALFSCOPE_HD Ints smaller(Ints x, Ints y) {
  return x < y ? x : y;
}

}  // namespace
}  // namespace halfscope
