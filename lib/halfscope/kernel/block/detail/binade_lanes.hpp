// Adds numbers to planes of bits, a vector at a time; only for *_simd.cpp, which are compiled once per
// instruction set.
#pragma once

#include <halfscope/kernel/block/detail/binade_planes.hpp>
#include <halfscope/kernel/detail/vector.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

HALFSCOPE_HD Ints load_bits(const std::uint32_t* from) {
  Ints bits;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}
HALFSCOPE_HD void store_bits(std::uint32_t* to, Ints bits) {
  std::memcpy(to, &bits, sizeof bits);
}

/// Bit `place` of each lane; none where it is not from 0 to 31.
HALFSCOPE_HD Ints one_bit(Ints place) {
  const Ints one = all_lanes(1u);
#if defined(__AVX512F__)
  return reinterpret_cast<Ints>(
      _mm512_maskz_sllv_epi32(0xFFFF, reinterpret_cast<__m512i>(one), reinterpret_cast<__m512i>(place)));
#elif defined(__AVX2__)
  return reinterpret_cast<Ints>(
      _mm256_sllv_epi32(reinterpret_cast<__m256i>(one), reinterpret_cast<__m256i>(place)));
#else
  const Ints low = place & 31;
  return (one << low) & (low == place);
#endif
}

/// A sum of three bits: its lower bit replaces `sum`, its higher one is returned.
HALFSCOPE_HD Ints add_bits(Ints& sum, Ints x, Ints y) {
#if defined(__AVX512F__)
  const auto a = reinterpret_cast<__m512i>(sum), b = reinterpret_cast<__m512i>(x),
             c = reinterpret_cast<__m512i>(y);
  sum = reinterpret_cast<Ints>(_mm512_ternarylogic_epi32(a, b, c, 0x96));
  return reinterpret_cast<Ints>(_mm512_ternarylogic_epi32(a, b, c, 0xE8));
#else
  const Ints one = sum ^ x, carry = (sum & x) | (one & y);
  sum = one ^ y;
  return carry;
#endif
}

/// Adds the numbers of a row, in steps of as many as planes have lanes.
class BinadeLanes {
 public:
  explicit BinadeLanes(BinadePlanes& planes) : planes_(planes), first_(all_lanes(planes.first_field)) {}

  /// Adds the lanes from `lane` on of the row's step with that number.
  HALFSCOPE_HD void add(std::size_t step, std::size_t lane, Ints magnitude) {
    const Ints place = as_ints(as_words(as_ints(as_words(magnitude) >> 23)) - as_words(first_));
    constexpr std::uint32_t next = BinadePlanes::binades_per_word;
    step %= BinadePlanes::group;
    store_bits(words_[0][step] + lane, one_bit(place));
    store_bits(words_[1][step] + lane, one_bit(as_ints(as_words(place) - next)));
  }
  HALFSCOPE_HD void end_step(std::size_t step) {
    if (step % BinadePlanes::group == BinadePlanes::group - 1) add_group();
  }
  /// The smallest magnitude that is counted.
  HALFSCOPE_HD std::uint32_t first_magnitude() const { return planes_.first_field << 23; }
  /// Adds what is left of a row of so many steps.
  HALFSCOPE_HD void finish(std::size_t steps) {
    for (; steps % BinadePlanes::group != 0; ++steps) {
      for (auto& word : words_) std::memset(word[steps % BinadePlanes::group], 0, sizeof word[0]);
      end_step(steps);
    }
  }

 private:
  HALFSCOPE_HD void add_group() {
    for (std::size_t word = 0; word < BinadePlanes::words; ++word) {
      for (std::size_t lane = 0; lane < BinadePlanes::lanes; lane += lanes) add_words(word, lane);
    }
    ++planes_.groups;
  }

  HALFSCOPE_HD void add_words(std::size_t word, std::size_t lane) {
    const auto sum = [&](std::size_t level) { return planes_.sums[level][word].data() + lane; };
    const auto waiting = [&](std::size_t level) { return planes_.waiting[level][word].data() + lane; };
    const auto bits = [&](std::size_t i) { return load_bits(words_[word][i] + lane); };
    Ints ones = load_bits(sum(0)), twos = load_bits(sum(1)), fours = load_bits(sum(2));
    const auto four_more = [&](std::size_t i) {
      const Ints first = add_bits(ones, bits(i), bits(i + 1)),
                 second = add_bits(ones, bits(i + 2), bits(i + 3));
      return add_bits(twos, first, second);
    };
    const Ints low = four_more(0), high = four_more(4);
    Ints carry = add_bits(fours, low, high);
    store_bits(sum(0), ones);
    store_bits(sum(1), twos);
    store_bits(sum(2), fours);
    std::size_t level = 3;
    for (std::uint32_t groups = planes_.groups; (groups & 1u) != 0; groups >>= 1, ++level) {
      Ints both = load_bits(sum(level));
      const Ints next = add_bits(both, load_bits(waiting(level)), carry);
      store_bits(sum(level), both);
      carry = next;
    }
    store_bits(waiting(level), carry);
  }

  BinadePlanes& planes_;
  Ints first_;
  alignas(64) std::uint32_t words_[BinadePlanes::words][BinadePlanes::group][BinadePlanes::lanes];
};

}  // namespace
}  // namespace halfscope
