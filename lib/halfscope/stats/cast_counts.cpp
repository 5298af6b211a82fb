// Counting casts: from the histogram where the cast is to FP16, else by comparing before and after.
#include <halfscope/stats/cast_counts.hpp>

#include <algorithm>
#include <vector>

#include <halfscope/core/parallel.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/format/catalogue.hpp>
#include <halfscope/kernel/round.hpp>
#include <halfscope/stats/what_if.hpp>

namespace halfscope {
namespace {

/// Elements below which another thread, and another histogram to merge, cost more than they save.
constexpr std::int64_t smallest_share = 16384;

/// One share per thread: where the cuts fall does not matter to integers.
template <typename Body>
void for_shares(std::int64_t size, Body&& body) {
  const std::int64_t shares = std::clamp<std::int64_t>(size / smallest_share, 1, thread_count());
  parallel_for(shares, [&](std::int64_t share) noexcept {
    const std::int64_t first = size * share / shares, next = size * (share + 1) / shares;
    body(static_cast<std::size_t>(share), static_cast<std::size_t>(first),
         static_cast<std::size_t>(next - first));
  });
}

/// The histogram of the values that are there before each share is rounded in place.
ExponentHistogram count_and_round(std::span<float> values, const Quantizer& quantizer) {
  std::vector<ExponentHistogram> parts(static_cast<std::size_t>(thread_count()));
  for_shares(static_cast<std::int64_t>(values.size()),
             [&](std::size_t share, std::size_t first, std::size_t count) {
               const std::span<float> part = values.subspan(first, count);
               parts[share].add(part);
               if (!quantizer.is_identity()) round(part, part, quantizer);
             });
  for (std::size_t i = 1; i < parts.size(); ++i) parts[0].merge(parts[i]);
  return parts[0];
}

void compare(std::span<const float> before, std::span<const float> after, const FloatFormat& format,
             CastCounts& counts) {
  const std::uint32_t min_normal = static_cast<std::uint32_t>(format.min_exponent() + 127) << 23;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::uint32_t exact = magnitude_bits(before[i]);
    const std::uint32_t rounded = magnitude_bits(after[i]);
    counts.flushed += exact != 0 && rounded == 0 ? 1 : 0;
    counts.subnormal += rounded != 0 && rounded < min_normal ? 1 : 0;
    counts.overflow += exact < infinity_bits && rounded >= infinity_bits ? 1 : 0;
  }
}

}  // namespace

CastCounts round_and_count(std::span<float> values, const Quantizer& quantizer, const RandomStream& stream) {
  CastCounts counts;
  if (quantizer == Quantizer{fp16} || quantizer.is_identity()) {
    counts.before = count_and_round(values, quantizer);
    const WhatIf cast = what_if(counts.before, 0);  // the values carry their scale already
    counts.flushed = cast.flushed;
    counts.subnormal = cast.subnormal;
    counts.overflow = cast.overflow;
    return counts;
  }
  const std::vector<float> before(values.begin(), values.end());
  counts.before.add(before);
  round(before, values, quantizer, stream);  // whole: a stochastic stream is indexed by element
  compare(before, values, quantizer.format, counts);
  return counts;
}

}  // namespace halfscope
