// Marks of blocks, compiled once per instruction set.
#include <halfscope/kernel/block/detail/marks_simd.hpp>

#include <halfscope/format/bits.hpp>

// Nothing here may be emitted out of line under a name that other translation units share.
namespace halfscope {
namespace {

/// A block's largest magnitude at its scale.
template <ScaleStep step>
HALFSCOPE_HD float at_scale(float amax, float factor) {
  return step == ScaleStep::multiply ? amax * factor : amax / factor;
}

/// Sums of marks, for a few blocks side by side: a loop over structures ends with scalars.
struct BlocksInColumns {
  static constexpr std::size_t most = 64;
  alignas(64) std::int32_t any[most];
  alignas(64) float factors[most], values[most];

  HALFSCOPE_HD void take(const BlocksToMark& blocks, std::size_t first, std::size_t count) {
    const BlockMaxima* const maxima = blocks.maxima.data() + first;
    const BlockScale* const scales = blocks.scales.data() + first;
    for (std::size_t i = 0; i < count; ++i) {
      any[i] = static_cast<std::int32_t>(maxima[i].any);
      factors[i] = scales[i].factor;
      values[i] = scales[i].value;
    }
  }
};

/// Whether no block is special; writes their marks, and adds their kinds. 1 or 0 of every condition, and the
/// sign of differences, since this runs in vectors.
template <ScaleStep step>
HALFSCOPE_HD bool mark_ordinary(const BlocksInColumns& blocks, std::size_t count, const MarkLimits& limits,
                                std::uint32_t* marks, KindsOfBlocks& kinds) {
  constexpr auto finite = static_cast<std::int32_t>(infinity_bits - 1);
  const std::int32_t last = static_cast<std::int32_t>(to_bits(limits.end)) - 1;
  const float normal = limits.elements.normal, tensor_scale = limits.tensor_scale, number = limits.largest;
  const float most = limits.elements.largest, limit = limits.elements.overflow;
  std::int32_t zero = 0, clipped = 0, overflow = 0, special = 0;
#pragma omp simd reduction(+ : zero, clipped, overflow) reduction(| : special)
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t any = blocks.any[i];
    const float factor = blocks.factors[i], scale = blocks.values[i];
    const float largest = at_scale<step>(from_bits(static_cast<std::uint32_t>(any)), factor);
    const float value = number * scale * tensor_scale, least = normal * scale * tensor_scale;
    const std::int32_t is_zero = any == 0 ? 1 : 0, vanishes = least == 0 ? -1 : 0;
    const std::int32_t clips = largest > most ? 1 : 0, overflows = clips & (largest >= limit ? 1 : 0);
    special |= (finite - any) | (finite - static_cast<std::int32_t>(magnitude_bits(factor))) |
               (finite - static_cast<std::int32_t>(to_bits(value))) |
               (last - static_cast<std::int32_t>(to_bits(largest))) | (vanishes & (is_zero - 1));
    if constexpr (step == ScaleStep::divide) special |= factor == 0 ? -1 : 0;
    zero += is_zero;
    clipped += clips;
    overflow += overflows;
    marks[i] = static_cast<std::uint32_t>(clips) * BlockMark::clips +
               static_cast<std::uint32_t>(overflows) * BlockMark::overflows;
  }
  kinds.zero += zero;
  kinds.clipped += clipped;
  kinds.overflow += overflow;
  kinds.at_risk += overflow;
  return special >= 0;
}

/// 1 or 0 of every condition, since this runs in vectors.
template <ScaleStep step>
HALFSCOPE_HD KindsOfBlocks mark_by_step(const BlocksToMark& blocks, const MarkLimits& shared_limits,
                                        std::uint32_t* marks) {
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
    const float largest = at_scale<step>(amax, factor);
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
    const std::int32_t is_beyond = largest >= limits.end ? 1 : 0;
    const std::int32_t vanishes = limits.elements.normal * scale * limits.tensor_scale == 0 ? 1 : 0;
    const std::int32_t special = is_nonfinite | (1 - is_finite) | divides_by_zero | is_beyond |
                                 (zero_scale & (1 - is_zero)) | (vanishes & (1 - zero_scale));
    zero += is_zero;
    nonfinite += is_nonfinite;
    clipped += clips;
    overflow += overflows;
    at_risk += overflows | is_nonfinite | loses;
    marks[i] = static_cast<std::uint32_t>(clips) * BlockMark::clips +
               static_cast<std::uint32_t>(overflows) * BlockMark::overflows +
               static_cast<std::uint32_t>(special) * BlockMark::special;
  }
  return {zero, nonfinite, clipped, overflow, at_risk};
}

}  // namespace

template <>
KindsOfBlocks mark_blocks_isa<target_isa>(const BlocksToMark& blocks, const MarkLimits& limits,
                                          std::uint32_t* marks) {
  if (limits.step == ScaleStep::multiply) return mark_by_step<ScaleStep::multiply>(blocks, limits, marks);
  return mark_by_step<ScaleStep::divide>(blocks, limits, marks);
}

template <>
bool mark_ordinary_isa<target_isa>(const BlocksToMark& blocks, const MarkLimits& limits, std::uint32_t* marks,
                                   KindsOfBlocks& kinds) {
  kinds = {};
  BlocksInColumns some;
  for (std::size_t at = 0; at < blocks.scales.size(); at += some.most) {
    const std::size_t left = blocks.scales.size() - at, count = left < some.most ? left : some.most;
    some.take(blocks, at, count);
    const bool are_ordinary = limits.step == ScaleStep::multiply
                                  ? mark_ordinary<ScaleStep::multiply>(some, count, limits, marks + at, kinds)
                                  : mark_ordinary<ScaleStep::divide>(some, count, limits, marks + at, kinds);
    if (!are_ordinary) return false;
  }
  return true;
}

}  // namespace halfscope
