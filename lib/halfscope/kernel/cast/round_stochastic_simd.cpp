// The loops of stochastic rounding, compiled once per instruction set.
#include <halfscope/kernel/cast/detail/round_stochastic.hpp>

#include <halfscope/format/round.hpp>
#include <halfscope/kernel/detail/vector.hpp>

// Nothing here may be emitted out of line under a name that other translation units share: everything is in
// an unnamed namespace or always inlined.
namespace halfscope {
namespace {

constexpr std::size_t blocks = vector_bytes / sizeof(std::uint64_t);  ///< that one vector holds a word of
constexpr std::size_t vectors = 4;                                    ///< in flight, so that none waits
constexpr std::size_t tile = 8 * blocks * vectors;                    ///< elements, with 16 bits each

using Longs [[gnu::vector_size(vector_bytes)]] = std::uint64_t;

// multiply_low_halves: the products of the low halves of 64-bit lanes. even_lanes: a[0], b[0], a[2], b[2],
// ...; odd_lanes: a[1], b[1], a[3], b[3], ...
#if defined(__AVX512F__)
// The masked forms, all lanes on: GCC 12 warns of an uninitialised value in the others (its bug 105593).
constexpr __mmask16 all = 0xFFFF;
HALFSCOPE_HD __m512i raw(Longs x) {
  return reinterpret_cast<__m512i>(x);
}
HALFSCOPE_HD Longs multiply_low_halves(Longs a, Longs b) {
  return reinterpret_cast<Longs>(_mm512_maskz_mul_epu32(0xFF, raw(a), raw(b)));
}
HALFSCOPE_HD Longs even_lanes(Longs a, Longs b) {
  return reinterpret_cast<Longs>(_mm512_maskz_unpacklo_epi64(0xFF, raw(a), raw(b)));
}
HALFSCOPE_HD Longs odd_lanes(Longs a, Longs b) {
  return reinterpret_cast<Longs>(_mm512_maskz_unpackhi_epi64(0xFF, raw(a), raw(b)));
}
#elif defined(__AVX2__)
HALFSCOPE_HD __m256i raw(Longs x) {
  return reinterpret_cast<__m256i>(x);
}
HALFSCOPE_HD Longs multiply_low_halves(Longs a, Longs b) {
  return reinterpret_cast<Longs>(_mm256_mul_epu32(raw(a), raw(b)));
}
HALFSCOPE_HD Longs even_lanes(Longs a, Longs b) {
  return reinterpret_cast<Longs>(_mm256_unpacklo_epi64(raw(a), raw(b)));
}
HALFSCOPE_HD Longs odd_lanes(Longs a, Longs b) {
  return reinterpret_cast<Longs>(_mm256_unpackhi_epi64(raw(a), raw(b)));
}
#elif defined(__x86_64__)
HALFSCOPE_HD __m128i raw(Longs x) {
  return reinterpret_cast<__m128i>(x);
}
HALFSCOPE_HD Longs multiply_low_halves(Longs a, Longs b) {
  return reinterpret_cast<Longs>(_mm_mul_epu32(raw(a), raw(b)));
}
HALFSCOPE_HD Longs even_lanes(Longs a, Longs b) {
  return reinterpret_cast<Longs>(_mm_unpacklo_epi64(raw(a), raw(b)));
}
HALFSCOPE_HD Longs odd_lanes(Longs a, Longs b) {
  return reinterpret_cast<Longs>(_mm_unpackhi_epi64(raw(a), raw(b)));
}
#else
HALFSCOPE_HD Longs multiply_low_halves(Longs a, Longs b) {
  return (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu);
}
HALFSCOPE_HD Longs even_lanes(Longs a, Longs b) {
  return Longs{a[0], b[0]};
}
HALFSCOPE_HD Longs odd_lanes(Longs a, Longs b) {
  return Longs{a[1], b[1]};
}
#endif

constexpr int rounds = 10;
/// The keys of Philox's rounds, all lanes alike: whole vectors from memory cost no operation.
struct Keys {
  Longs first[rounds], second[rounds];
};
Keys keys_of(std::uint64_t seed) {
  Keys keys;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    keys.first[round] = Longs{} + ((seed + round * 0x9E3779B9u) & 0xFFFFFFFFu);
    keys.second[round] = Longs{} + (((seed >> 32) + round * 0xBB67AE85u) & 0xFFFFFFFFu);
  }
  return keys;
}

/// The words of a tile's Philox blocks from `first` on, in order, as RandomStream::block gives them, the
/// lower half of each before the upper. A lane holds a word in its low half; what the high half holds never
/// reaches a result.
void draw(const RandomStream& stream, const Keys& keys, std::uint64_t first, std::uint16_t* out) {
  const Longs multiplier0 = Longs{} + 0xD2511F53u, multiplier1 = Longs{} + 0xCD9E8D57u;
  Longs order{};  // even_lanes and odd_lanes put the blocks into their own order in the end
  for (std::size_t lane = 0; lane < blocks; ++lane) order[lane] = lane % 2 * (blocks / 2) + lane / 2;
  Longs c0[vectors], c1[vectors], c2[vectors], c3[vectors];
  for (std::size_t v = 0; v < vectors; ++v) {
    c0[v] = order + (first + v * blocks);
    c1[v] = c0[v] >> 32;
    c2[v] = Longs{} + stream.step;
    c3[v] = Longs{} + stream.site;
  }
#pragma GCC unroll 10
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t v = 0; v < vectors; ++v) {
      const Longs product0 = multiply_low_halves(c0[v], multiplier0);
      const Longs product1 = multiply_low_halves(c2[v], multiplier1);
      c0[v] = (product1 >> 32) ^ c1[v] ^ keys.first[round];
      c1[v] = product1;
      c2[v] = (product0 >> 32) ^ c3[v] ^ keys.second[round];
      c3[v] = product0;
    }
  }
  for (std::size_t v = 0; v < vectors; ++v) {
    const Longs first_words = (c0[v] & 0xFFFFFFFFu) | (c1[v] << 32);
    const Longs last_words = (c2[v] & 0xFFFFFFFFu) | (c3[v] << 32);
    const Longs parts[2] = {even_lanes(first_words, last_words), odd_lanes(first_words, last_words)};
    std::memcpy(out + 8 * v * blocks, parts, sizeof parts);
  }
}

template <Zeros zeros>
void round_tile_by_element(const float* in, float* out, std::size_t count, const std::uint16_t* random,
                           const RoundingGrid& shared_grid) {
  const RoundingGrid grid = shared_grid;  // a copy that `out` cannot alias
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i)
    out[i] =
        round_on_grid<Rounding::stochastic, zeros>(in[i], grid, (std::uint32_t{random[i]} << 16) | 0x8000u);
}

#if defined(__AVX512F__)
/// Two ways that meet at the format's smallest number. From there on the discarded bits are the low ones of
/// the float, and random ones are added to them. Below, the float counted in 2^-32 parts of the smallest
/// number is added to the random bits, and a carry makes the smallest number.
struct StochasticGrid {
  __m512i field_offset, most_kept, smallest, flush_below, max_finite, beyond;
  __m512 parts;
  __mmask16 beyond_is_nan;
};

StochasticGrid stochastic_grid(const RoundingGrid& grid) {
  const auto lanes_of = [](std::uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); };
  const std::uint32_t kept = 32 - grid.dropped_bits;
  const float smallest = from_bits(grid.smallest);
  return {.field_offset = lanes_of(grid.min_normal_field > 1 ? kept - grid.min_normal_field : 64u),
          .most_kept = lanes_of(kept),
          .smallest = lanes_of(grid.smallest),
          .flush_below = lanes_of(grid.flush_below),
          .max_finite = lanes_of(grid.max_finite),
          .beyond = lanes_of(grid.beyond),
          .parts = _mm512_set1_ps(smallest > 0 ? 0x1p32f / smallest : 0.0f),
          .beyond_is_nan = grid.beyond > infinity_bits ? all : __mmask16{0}};
}

HALFSCOPE_HD __m512 round_vector(__m512 x, __m512i random, const StochasticGrid& g) {
  const __m512i sign = _mm512_set1_epi32(static_cast<int>(sign_bit)), ones = _mm512_set1_epi32(-1);
  const __m512i magnitude = _mm512_maskz_andnot_epi32(all, sign, _mm512_castps_si512(x));
  const __m512i field = _mm512_maskz_srli_epi32(all, magnitude, 23);
  const __m512i kept = _mm512_maskz_min_epi32(all, _mm512_add_epi32(field, g.field_offset), g.most_kept);
  const __m512i sum = _mm512_add_epi32(magnitude, _mm512_maskz_srlv_epi32(all, random, kept));
  __m512i result = _mm512_maskz_andnot_epi32(all, _mm512_maskz_srlv_epi32(all, ones, kept), sum);
  const __m512 parts = _mm512_mul_ps(_mm512_castsi512_ps(magnitude), g.parts);
  const __m512i carried = _mm512_add_epi32(_mm512_maskz_cvttps_epu32(all, parts), random);
  const __mmask16 tiny = _mm512_cmplt_epu32_mask(magnitude, g.smallest);
  const __mmask16 carry = _mm512_cmplt_epu32_mask(carried, random);
  result = _mm512_mask_mov_epi32(result, tiny, _mm512_maskz_mov_epi32(carry, g.smallest));
  result = _mm512_maskz_mov_epi32(_mm512_cmpge_epu32_mask(result, g.flush_below), result);
  const __mmask16 over = _mm512_cmpgt_epu32_mask(result, g.max_finite);
  result = _mm512_mask_mov_epi32(result, over, g.beyond);
  constexpr int result_or_sign_of_x = 0xF8;  // A | (B & C)
  result = _mm512_ternarylogic_epi32(result, _mm512_castps_si512(x), sign, result_or_sign_of_x);
  const auto nan = static_cast<__mmask16>(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q) | (over & g.beyond_is_nan));
  result = _mm512_mask_mov_epi32(result, nan, _mm512_set1_epi32(static_cast<int>(quiet_nan_bits)));
  return _mm512_castsi512_ps(result);
}

/// Rounding to FP16, in floats: x and the random part of a step are added, cut off to 24 bits, and cut off
/// again by adding 2^13 of x's binade, whose last place is a step: in the next binade, sums are at its very
/// start.
HALFSCOPE_HD __m512 round_vector_to_fp16(__m512 x, __m512i random) {
  const __m512i sign = _mm512_set1_epi32(static_cast<int>(sign_bit));
  const __m512i infinity = _mm512_set1_epi32(static_cast<int>(infinity_bits));
  const __m512i magnitude = _mm512_maskz_andnot_epi32(all, sign, _mm512_castps_si512(x));
  const __m512i binade = _mm512_maskz_max_epi32(all, _mm512_maskz_and_epi32(all, magnitude, infinity),
                                                _mm512_set1_epi32(113 << 23));  // 2^-14 at least
  // (random + 1/2) / 2^16 of a step, which is 2^-10 of the binade; 2^23 + random is a float of these bits.
  const __m512 shifted = _mm512_castsi512_ps(_mm512_or_si512(random, _mm512_set1_epi32(0x4B000000)));
  const __m512 part = _mm512_fmadd_ps(shifted, _mm512_set1_ps(0x1p-26f), _mm512_set1_ps(0x1p-27f - 0x1p-3f));
  constexpr int cut = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  const __m512 start = _mm512_castsi512_ps(binade), to_magic = _mm512_set1_ps(0x1p13f);
  const __m512 sum = _mm512_fmadd_round_ps(part, start, _mm512_castsi512_ps(magnitude), cut);
  const __m512 cut_off = _mm512_fmadd_round_ps(start, to_magic, sum, cut);
  __m512i result = _mm512_castps_si512(_mm512_fnmadd_ps(start, to_magic, cut_off));
  const __mmask16 over = _mm512_cmp_ps_mask(sum, _mm512_set1_ps(65536), _CMP_GE_OQ);
  result = _mm512_mask_mov_epi32(result, over, infinity);
  constexpr int result_or_sign_of_x = 0xF8;  // A | (B & C)
  result = _mm512_ternarylogic_epi32(result, _mm512_castps_si512(x), sign, result_or_sign_of_x);
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  result = _mm512_mask_mov_epi32(result, nan, _mm512_set1_epi32(static_cast<int>(quiet_nan_bits)));
  return _mm512_castsi512_ps(result);
}

/// round(x, bits) of vectors, where `bits` are 16 random bits per lane.
template <typename Round>
HALFSCOPE_HD void round_vectors(const float* in, float* out, std::size_t count, const std::uint16_t* random,
                                Round round) {
  const auto bits = [&](std::size_t i) {
    __m256i halves;
    std::memcpy(&halves, random + i, sizeof halves);
    return _mm512_maskz_cvtepu16_epi32(all, halves);
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) store(out + i, round(load(in + i), bits(i)));
  if (i < count) store_some(out + i, round(load_some(in + i, count - i), bits(i)), count - i);
}

bool is_fp16(const RoundingGrid& grid) {
  return grid.min_normal_field == 113 && grid.dropped_bits == 13 && grid.flush_below == 0 &&
         grid.beyond == infinity_bits && grid.max_finite == 0x477FE000u && grid.random_kept == ~0u;
}

void round_tile(const float* in, float* out, std::size_t count, const std::uint16_t* random,
                const RoundingGrid& grid) {
  if (grid.unsigned_zero != 0) return round_tile_by_element<Zeros::any>(in, out, count, random, grid);
  if (is_fp16(grid)) {
    return round_vectors(in, out, count, random,
                         [](__m512 x, __m512i bits) { return round_vector_to_fp16(x, bits); });
  }
  const StochasticGrid g = stochastic_grid(grid);
  const __m512i last_half = _mm512_set1_epi32(grid.random_kept == ~0u ? 0x8000 : 0);
  const __m512i kept = _mm512_set1_epi32(static_cast<int>(grid.random_kept));
  round_vectors(in, out, count, random, [=](__m512 x, __m512i bits) {
    const __m512i high = _mm512_maskz_and_epi32(all, _mm512_maskz_slli_epi32(all, bits, 16), kept);
    return round_vector(x, _mm512_or_si512(high, last_half), g);
  });
}
#else
void round_tile(const float* in, float* out, std::size_t count, const std::uint16_t* random,
                const RoundingGrid& grid) {
  if (grid.unsigned_zero != 0) return round_tile_by_element<Zeros::any>(in, out, count, random, grid);
  round_tile_by_element<Zeros::both>(in, out, count, random, grid);
}
#endif

}  // namespace

template <>
void round_stochastic_isa<target_isa>(const float* in, float* out, std::size_t count, const Quantizer& q,
                                      const PartStream& part) {
  const RoundingGrid grid = rounding_grid(q);
  const Keys keys = keys_of(part.stream.seed);
  alignas(64) std::uint16_t random[tile + lanes] = {};  // vectors read beyond the last element's
  for (std::size_t start = 0; start < count;) {
    const std::uint64_t index = part.first + start;
    const std::size_t skipped = index % 8, drawn = tile - skipped;
    draw(part.stream, keys, index / 8, random);
    const std::size_t some = count - start < drawn ? count - start : drawn;
    round_tile(in + start, out + start, some, random + skipped, grid);
    start += some;
  }
}

}  // namespace halfscope
