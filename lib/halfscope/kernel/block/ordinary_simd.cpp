// Rounds, counts and squares the elements of ordinary rows, compiled once per instruction set.
#include <halfscope/kernel/block/detail/ordinary_simd.hpp>

#include <utility>

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
  return __builtin_convertvector(half, Doubles);
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

/// How often a condition held in each lane.
struct LaneCounts {
  Ints counts{};

  HALFSCOPE_HD void add(Ints condition) { counts = counts - condition; }
  HALFSCOPE_HD std::int64_t sum() const {
    std::int64_t all = 0;
    for (std::size_t i = 0; i < lanes; ++i) all += counts[i];
    return all;
  }
};

struct OrdinarySums {
  SquareLanes signal, error;
  LaneCounts zeros, zero_values, subnormal;
};

/// Counts of a step, of which the last columns beyond the row's are zeros.
template <bool has_tensor_scale, typename Lanes>
HALFSCOPE_HD void count_step(const float* x, const BlockScale& scale, const Lanes& element,
                             const float* shared, float* scaled, OrdinarySums& sums) {
  const FloatVec factor = all_lanes(scale.factor), unit = all_lanes(scale.value);
  const FloatVec tensor = all_lanes(shared[0]), normal = all_lanes(shared[1]);
  for (std::size_t i = 0; i < ordinary_step; i += lanes) {
    const FloatVec number = load(x + i), exact = element.scaled(number, factor);
    const FloatVec rounded = element.element(exact), at_unit = rounded * unit;
    const FloatVec value = has_tensor_scale ? at_unit * tensor : at_unit;
    if (scaled != nullptr) store(scaled + i, exact);
    const Ints is_zero = value == 0.0f;
    sums.zeros.add(number == 0.0f);
    sums.zero_values.add(is_zero);
    sums.subnormal.add((magnitude_of(rounded) < as_ints(normal)) & ~is_zero);
    sums.signal.add(i, number);
    sums.error.add(i, number - value);
  }
}

template <bool has_tensor_scale, typename Lanes>
HALFSCOPE_HD OrdinaryCounts count_row(const OrdinaryRow& row, const float* shared, const Lanes& element,
                                      float* scaled) {
  OrdinarySums sums;
  std::int64_t beyond = 0;
  for_each_ordinary_step(
      row, [&](const float* x, std::size_t column, std::size_t count, const BlockScale& scale)
               __attribute__((always_inline)) {
                 float* const to = scaled == nullptr ? nullptr : scaled + column;
                 if (count == ordinary_step)
                   return count_step<has_tensor_scale>(x, scale, element, shared, to, sums);
                 alignas(64) float last[ordinary_step];
                 count_step<has_tensor_scale>(x, scale, element, shared, last, sums);
                 if (to != nullptr) std::memcpy(to, last, count * sizeof(float));
                 beyond = static_cast<std::int64_t>(ordinary_step - count);
               });
  return {sums.zeros.sum() - beyond, sums.zero_values.sum() - beyond, sums.subnormal.sum(), sums.signal.sum(),
          sums.error.sum()};
}

/// 1 or 0 of every condition, since this runs in vectors.
template <ScaleStep step>
HALFSCOPE_HD KindsOfBlocks mark_by_step(const BlocksToMark& blocks, const MarkLimits& shared_limits,
                                        std::uint8_t* marks) {
  const MarkLimits limits = shared_limits;  // copies that the marks cannot alias
  const BlockMaxima* const maxima = blocks.maxima.data();
  const float* const magnitudes = blocks.amax.data();
  const BlockScale* const scales = blocks.scales.data();
  const std::size_t count = blocks.scales.size();
  const float infinity = from_bits(infinity_bits);
  std::int32_t zero = 0, nonfinite = 0, clipped = 0, overflow = 0, at_risk = 0;
#pragma omp simd reduction(+ : zero, nonfinite, clipped, overflow, at_risk)
  for (std::size_t i = 0; i < count; ++i) {
    const float amax = magnitudes[i], factor = scales[i].factor, scale = scales[i].value;
    const auto any = static_cast<std::int32_t>(maxima[i].any);
    const float largest = step == ScaleStep::multiply ? amax * factor : amax / factor;
    const std::int32_t is_zero = any == 0 ? 1 : 0, has_number = amax > 0 ? 1 : 0;
    const std::int32_t is_nonfinite = any >= static_cast<std::int32_t>(infinity_bits) ? 1 : 0;
    const std::int32_t zero_scale = scale == 0 ? 1 : 0, has_limit = scale < infinity ? 1 : 0;
    const std::int32_t has_scale = has_limit & (1 - zero_scale);
    const std::int32_t clips = has_scale & has_number & (largest > limits.elements.largest ? 1 : 0);
    const std::int32_t overflows = clips & (largest >= limits.elements.overflow ? 1 : 0);
    const std::int32_t is_nan = largest == largest ? 0 : 1;
    const std::int32_t loses = (zero_scale & (has_number | is_nan)) | (1 - (has_limit | zero_scale));
    const float magnitude = from_bits(magnitude_bits(factor)),
                value = limits.largest * scale * limits.tensor_scale;
    const std::int32_t divides_by_zero = step == ScaleStep::divide ? (factor == 0 ? 1 : 0) : 0;
    const std::int32_t is_finite = (magnitude < infinity ? 1 : 0) & (value < infinity ? 1 : 0);
    const std::int32_t special =
        is_nonfinite | (1 - is_finite) | divides_by_zero | (zero_scale & (1 - is_zero));
    zero += is_zero;
    nonfinite += is_nonfinite;
    clipped += clips;
    overflow += overflows;
    at_risk += overflows | is_nonfinite | loses;
    marks[i] = static_cast<std::uint8_t>(clips * BlockMark::clips + special * BlockMark::special);
  }
  return {zero, nonfinite, clipped, overflow, at_risk};
}

}  // namespace

template <>
KindsOfBlocks mark_blocks_isa<target_isa>(const BlocksToMark& blocks, const MarkLimits& limits,
                                          std::uint8_t* marks) {
  if (limits.step == ScaleStep::multiply) return mark_by_step<ScaleStep::multiply>(blocks, limits, marks);
  return mark_by_step<ScaleStep::divide>(blocks, limits, marks);
}

template <>
OrdinaryCounts count_ordinary_isa<target_isa>(const OrdinaryRow& row, const SegmentRounding& rounding,
                                              float normal, float* scaled) {
  const float shared[2] = {rounding.tensor_scale, normal};
  OrdinaryCounts counts;
  with_ordinary_lanes(rounding, [&](const auto& element) {
    counts = rounding.tensor_scale == 1 ? count_row<false>(row, shared, element, scaled)
                                        : count_row<true>(row, shared, element, scaled);
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
          clipped.add(magnitude > largest);
          below.add(magnitude < limit);
        }
        all += ordinary_step;
      });
  return {clipped.sum(), all - below.sum()};
}

}  // namespace halfscope
