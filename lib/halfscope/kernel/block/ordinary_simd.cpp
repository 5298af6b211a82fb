// Rounds, counts and squares the elements of ordinary rows, compiled once per instruction set.
#include <halfscope/kernel/block/detail/ordinary_simd.hpp>

#include <bit>
#include <utility>

#include <halfscope/kernel/block/detail/binade_lanes.hpp>
#include <halfscope/kernel/block/detail/ordinary_lanes.hpp>

// Nothing here may be emitted out of line under a name that other translation units share.
namespace halfscope {
namespace {

constexpr std::size_t half_lanes = lanes / 2;
using Doubles [[gnu::vector_size(vector_bytes)]] = double;
using HalfFloats [[gnu::vector_size(vector_bytes / 2)]] = float;

template <std::size_t first, std::size_t... i>
HALFSCOPE_HD Doubles half_in_double(FloatVec x, std::index_sequence<i...> /*lanes*/) {
  const HalfFloats half = __builtin_shufflevector(x, x, static_cast<int>(first + i)...);
#if defined(__AVX512F__)  // GCC 12 converts quarters
  return _mm512_maskz_cvtps_pd(0xFF, half);
#else
  return __builtin_convertvector(half, Doubles);
#endif
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
    Doubles* const to = sums + first / half_lanes;
    to[0] = add_square(half_in_double<0>(x, half), to[0]);
    to[1] = add_square(half_in_double<half_lanes>(x, half), to[1]);
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

/// The smallest magnitude of numbers that are not zero.
struct LeastMagnitude {
  Words less_one = ~Words{};  ///< that of a zero is the largest word

  HALFSCOPE_HD void add(Ints magnitude) {
    const Words x = as_words(magnitude) - 1;
    less_one = x < less_one ? x : less_one;
  }
  HALFSCOPE_HD bool is_below(std::uint32_t magnitude) const {
    std::uint32_t lane[lanes], least = ~0u;
    std::memcpy(lane, &less_one, sizeof lane);
#pragma omp simd reduction(min : least)
    for (std::size_t i = 0; i < lanes; ++i) least = lane[i] < least ? lane[i] : least;
    return least < magnitude - 1;
  }
};

struct OrdinarySums {
  SquareLanes signal, error;
  LaneCounts zeros, zero_values, below_normal;
  LeastMagnitude least{};
};

/// Sixteen columns of a row: their number among the row's, and the place of their values, or null.
struct OrdinaryStep {
  const float* x;
  const BlockScale& scale;
  std::size_t number;
  float* values;
};

/// Counts of a step, of which the last columns beyond the row's are zeros.
template <bool has_tensor_scale, typename Lanes>
HALFSCOPE_HD void count_step(const OrdinaryStep& step, const Lanes& element, const float* shared,
                             BinadeLanes* binades, OrdinarySums& sums) {
  const FloatVec factor = all_lanes(step.scale.factor), unit = all_lanes(step.scale.value);
  const FloatVec tensor = all_lanes(shared[0]), normal = all_lanes(shared[1]);
  for (std::size_t i = 0; i < ordinary_step; i += lanes) {
    const FloatVec number = load(step.x + i), exact = element.scaled(number, factor);
    const Ints magnitude = magnitude_of(exact), rounded = element.rounded(magnitude);
    const FloatVec at_unit = as_floats(rounded | (as_ints(exact) & all_lanes(sign_bit))) * unit;
    const FloatVec value = has_tensor_scale ? at_unit * tensor : at_unit;
    if (step.values != nullptr) store(step.values + i, value);
    if (binades != nullptr) {
      binades->add(step.number, i, magnitude);
      sums.least.add(magnitude);
    }
    sums.zeros.add(is_zero(number));
    sums.zero_values.add(is_zero(value));
    sums.below_normal.add(is_less(rounded, as_ints(normal)));
    sums.signal.add(i, number);
    sums.error.add(i, number - value);
  }
  if (binades != nullptr) binades->end_step(step.number);
}

template <bool has_tensor_scale, typename Lanes>
HALFSCOPE_HD OrdinaryCounts count_row(const OrdinaryRow& row, const float* shared, const Lanes& element,
                                      float* values, BinadeLanes* binades) {
  OrdinarySums sums;
  std::int64_t beyond = 0;
  for_each_ordinary_step(
      row, [&](const float* x, std::size_t column, std::size_t count,
               const BlockScale& scale) __attribute__((always_inline)) {
        float* const to = values == nullptr ? nullptr : values + column;
        const std::size_t number = column / ordinary_step;
        if (count == ordinary_step)
          return count_step<has_tensor_scale>({x, scale, number, to}, element, shared, binades, sums);
        alignas(64) float last[ordinary_step];
        count_step<has_tensor_scale>({x, scale, number, last}, element, shared, binades, sums);
        if (to != nullptr) std::memcpy(to, last, count * sizeof(float));
        beyond = static_cast<std::int64_t>(ordinary_step - count);
      });
  if (binades != nullptr) binades->finish((row.values.size() + ordinary_step - 1) / ordinary_step);
  const std::int64_t zero_values = sums.zero_values.sum();
  return {.zeros = sums.zeros.sum() - beyond,
          .zero_values = zero_values - beyond,
          .subnormal = sums.below_normal.sum() - zero_values,
          .signal = sums.signal.sum(),
          .error = sums.error.sum(),
          .is_below_planes = binades != nullptr && sums.least.is_below(binades->first_magnitude())};
}

template <bool has_tensor_scale, typename Lanes>
HALFSCOPE_HD OrdinaryCounts count_row(const OrdinaryRow& row, const float* shared, const Lanes& element,
                                      const OrdinaryOutput& out) {
  if (out.planes == nullptr) return count_row<has_tensor_scale>(row, shared, element, out.values, nullptr);
  BinadeLanes binades(*out.planes);
  return count_row<has_tensor_scale>(row, shared, element, out.values, &binades);
}

}  // namespace

template <>
OrdinaryCounts count_ordinary_isa<target_isa>(const OrdinaryRow& row, const SegmentRounding& rounding,
                                              float normal, const OrdinaryOutput& out) {
  const float shared[2] = {rounding.tensor_scale, normal};
  OrdinaryCounts counts;
  with_ordinary_lanes(rounding, [&](const auto& element) {
    counts = rounding.tensor_scale == 1 ? count_row<false>(row, shared, element, out)
                                        : count_row<true>(row, shared, element, out);
  });
  return counts;
}

template <>
BeyondCounts count_beyond_isa<target_isa>(const OrdinaryRow& row, ScaleStep step,
                                          const ElementLimits& limits) {
  const Ints largest = as_ints(all_lanes(limits.largest)), limit = as_ints(all_lanes(limits.overflow));
  const bool multiplies = step == ScaleStep::multiply;
  LaneCounts clipped, below;
  std::int64_t all = 0;
  for_each_ordinary_step(
      row, [&](const float* x, std::size_t /*column*/, std::size_t /*count*/,
               const BlockScale& scale) __attribute__((always_inline)) {
        const FloatVec factor = all_lanes(scale.factor);
        for (std::size_t i = 0; i < ordinary_step; i += lanes) {
          const FloatVec number = load(x + i), exact = multiplies ? number * factor : number / factor;
          const Ints magnitude = magnitude_of(exact);
          clipped.add(is_less(largest, magnitude));
          below.add(is_less(magnitude, limit));
        }
        all += ordinary_step;
      });
  return {clipped.sum(), all - below.sum()};
}

template <>
void add_planes_isa<target_isa>(const BinadePlanes& planes, std::int64_t* counts) {
  const auto levels = static_cast<std::size_t>(3 + std::bit_width(planes.groups));
  for (std::size_t binade = 0; binade < BinadePlanes::binades; ++binade) {
    const std::size_t word = binade / BinadePlanes::binades_per_word;
    const auto bit = static_cast<int>(binade % BinadePlanes::binades_per_word);
    Ints sums{};
    for (std::size_t lane = 0; lane < BinadePlanes::lanes; lane += lanes) {
      const auto bits = [&](const BinadePlanes::Plane& plane) {
        return as_ints(as_words(load_bits(plane[word].data() + lane)) >> bit) & 1;
      };
      Ints sum{};
      for (std::size_t level = levels; level-- > 0;) {
        sum = sum + sum + bits(planes.sums[level]);
        if (level >= 3 && (planes.groups >> (level - 3) & 1u) != 0) sum = sum + bits(planes.waiting[level]);
      }
      sums = sums + sum;
    }
    for (std::size_t i = 0; i < lanes; ++i) counts[binade] += sums[i];
  }
}

}  // namespace halfscope
