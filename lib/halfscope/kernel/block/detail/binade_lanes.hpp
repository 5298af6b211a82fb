// Adds numbers to planes of bits, a vector at a time; only for *_simd.cpp, which are compiled once per
// instruction set.
#pragma once

#include <utility>

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

/// Adds the numbers of rows, in groups of steps of as many as planes have lanes.
class BinadeLanes {
 public:
  HALFSCOPE_HD explicit BinadeLanes(BinadePlanes& planes)
      : planes_(planes), first_(all_lanes(planes.first_field)) {
    for_each_vector([&](std::size_t word, std::size_t part) {
      for (std::size_t i = 0; i < BinadePlanes::group_levels; ++i)
        words_[word][part].sums[i] = load_bits(plane(planes_.sums[i], word, part));
    });
  }

  /// Adds the lanes from part * lanes on of the group's step with that number; steps come in order.
  template <std::size_t step>
  HALFSCOPE_HD void add(std::size_t part, Ints magnitude) {
    const Ints place = as_ints(as_words(as_ints(as_words(magnitude) >> 23)) - as_words(first_));
    constexpr std::uint32_t next = BinadePlanes::binades_per_word;
    add_bits_of<step>(0, part, one_bit(place));
    add_bits_of<step>(1, part, one_bit(as_ints(as_words(place) - next)));
  }
  /// Eight groups at a time carry further, so that the number of carries is no branch of every group.
  HALFSCOPE_HD void end_group() {
    ++planes_.groups;
    if (planes_.groups % BinadePlanes::group == 0) add_carried();
  }
  HALFSCOPE_HD void finish() {
    for_each_vector([&](std::size_t word, std::size_t part) {
      for (std::size_t i = 0; i < BinadePlanes::group_levels; ++i)
        store_bits(plane(planes_.sums[i], word, part), words_[word][part].sums[i]);
    });
  }
  /// The smallest magnitude that is counted.
  HALFSCOPE_HD std::uint32_t first_magnitude() const { return planes_.first_field << 23; }

 private:
  static constexpr std::size_t parts = BinadePlanes::lanes / lanes;

  /// Sums of three levels, the lowest first, and at each of them the first of two words to be added.
  struct Levels {
    Ints sums[BinadePlanes::group_levels], first[BinadePlanes::group_levels];
  };

  HALFSCOPE_HD static std::uint32_t* plane(BinadePlanes::Plane& plane, std::size_t word, std::size_t part) {
    return plane[word].data() + part * lanes;
  }
  /// Calls body(word, part) for every vector of a plane.
  template <typename Body>
  HALFSCOPE_HD static void for_each_vector(const Body& body) {
    for (std::size_t word = 0; word < BinadePlanes::words; ++word) {
      for (std::size_t part = 0; part < parts; ++part) body(word, part);
    }
  }

  template <std::size_t step>
  HALFSCOPE_HD void add_bits_of(std::size_t word, std::size_t part, Ints bits) {
    Levels& levels = words_[word][part];
    const bool ends = add_second<step>(levels, bits);
    if (ends) store_bits(plane(planes_.carried[planes_.groups % BinadePlanes::group], word, part), bits);
  }
  /// Adds the word of a step with the one before it, and so on; whether `bits` became the carry of a group.
  template <std::size_t step>
  HALFSCOPE_HD static bool add_second(Levels& to, Ints& bits) {
    if constexpr (step % 2 == 0) {
      to.first[0] = bits;
      return false;
    }
    bits = add_bits(to.sums[0], to.first[0], bits);
    if constexpr (step % 4 == 1) {
      to.first[1] = bits;
      return false;
    }
    bits = add_bits(to.sums[1], to.first[1], bits);
    if constexpr (step == 3) {
      to.first[2] = bits;
      return false;
    }
    bits = add_bits(to.sums[2], to.first[2], bits);
    return true;
  }

  HALFSCOPE_HD void add_carried() {
    for_each_vector([&](std::size_t word, std::size_t part) {
      Levels levels;
      for (std::size_t i = 0; i < BinadePlanes::group_levels; ++i)
        levels.sums[i] = load_bits(plane(planes_.sums[BinadePlanes::group_levels + i], word, part));
      Ints bits{};
      [&]<std::size_t... step>(std::index_sequence<step...> /*steps*/) __attribute__((always_inline)) {
        ((bits = load_bits(plane(planes_.carried[step], word, part)), add_second<step>(levels, bits)), ...);
      }
      (std::make_index_sequence<BinadePlanes::group>{});
      for (std::size_t i = 0; i < BinadePlanes::group_levels; ++i)
        store_bits(plane(planes_.sums[BinadePlanes::group_levels + i], word, part), levels.sums[i]);
      carry_on(word, part, bits);
    });
  }
  HALFSCOPE_HD void carry_on(std::size_t word, std::size_t part, Ints carry) {
    std::size_t k = 0;
    constexpr auto group = static_cast<std::uint32_t>(BinadePlanes::group);
    for (std::uint32_t eights = planes_.groups / group - 1; (eights & 1u) != 0; eights >>= 1, ++k) {
      std::uint32_t* const sum = plane(planes_.sums[BinadePlanes::carry_level + k], word, part);
      Ints both = load_bits(sum);
      const Ints next = add_bits(both, load_bits(plane(planes_.waiting[k], word, part)), carry);
      store_bits(sum, both);
      carry = next;
    }
    store_bits(plane(planes_.waiting[k], word, part), carry);
  }

  BinadePlanes& planes_;
  Ints first_;
  Levels words_[BinadePlanes::words][parts];
};

}  // namespace
}  // namespace halfscope
