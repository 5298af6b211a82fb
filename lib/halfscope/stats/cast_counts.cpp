// Counting casts: from the histogram where there is one of a cast to FP16, else by comparing before and
// after.
#include <halfscope/stats/cast_counts.hpp>

#include <algorithm>
#include <array>
#include <vector>

#include <halfscope/core/parallel.hpp>
#include <halfscope/format/catalogue.hpp>
#include <halfscope/kernel/round.hpp>
#include <halfscope/stats/what_if.hpp>

namespace halfscope {
namespace {

/// Elements below which another thread, and other counts to merge, cost more than they save.
constexpr std::int64_t smallest_share = 16384;
/// Elements that are copied, rounded and compared at a time, within the innermost cache.
constexpr std::size_t tile = 2048;

/// Calls body(share, values) for one share of the array per thread and returns what the shares counted. Where
/// the cuts fall does not matter to integers.
template <typename Counts, typename Body>
std::vector<Counts> count_shares(std::span<float> values, Body&& body) {
  const auto size = static_cast<std::int64_t>(values.size());
  const std::int64_t shares = std::clamp<std::int64_t>(size / smallest_share, 1, thread_count());
  std::vector<Counts> counts(static_cast<std::size_t>(shares));
  parallel_for(shares, [&](std::int64_t share) noexcept {
    const std::int64_t first = size * share / shares, next = size * (share + 1) / shares;
    body(counts[static_cast<std::size_t>(share)],
         values.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(next - first)));
  });
  return counts;
}

void merge(CastTally& all, const CastTally& part) {
  all.zeros += part.zeros;
  all.nonfinite += part.nonfinite;
  all.flushed += part.flushed;
  all.subnormal += part.subnormal;
  all.overflow += part.overflow;
  all.max_abs = std::max(all.max_abs, part.max_abs);
}

/// The histogram of the values that are there before each share is rounded in place.
ExponentHistogram round_with_histogram(std::span<float> values, const Quantizer& quantizer) {
  auto parts =
      count_shares<ExponentHistogram>(values, [&](ExponentHistogram& counts, std::span<float> share) {
        counts.add(share);
        if (!quantizer.is_identity()) round(share, share, quantizer);
      });
  for (std::size_t i = 1; i < parts.size(); ++i) parts[0].merge(parts[i]);
  return std::move(parts[0]);
}

CastTally tally_of(const ExponentHistogram& before) {
  const WhatIf cast = what_if(before, 0);  // the values carry their scale already
  return {.zeros = before.zeros(),
          .nonfinite = before.infinities() + before.nans(),
          .flushed = cast.flushed,
          .subnormal = cast.subnormal,
          .overflow = cast.overflow,
          .max_abs = before.max_abs()};
}

CastTally round_with_tally(std::span<float> values, const Quantizer& quantizer) {
  const auto parts = count_shares<CastTally>(values, [&](CastTally& tally, std::span<float> share) {
    std::array<float, tile> buffer;
    for (std::size_t start = 0; start < share.size(); start += tile) {
      const std::span<float> here = share.subspan(start, std::min(tile, share.size() - start));
      const std::span<float> other(buffer.data(), here.size());
      if (quantizer.is_identity()) {
        round(here, other, {fp16});
        tally_cast(here, other, fp16, tally);
      } else {
        std::copy(here.begin(), here.end(), other.begin());
        round(here, here, quantizer);
        tally_cast(other, here, quantizer.format, tally);
      }
    }
  });
  CastTally all;
  for (const CastTally& part : parts) merge(all, part);
  return all;
}

/// A stochastic stream is indexed by element: the array is rounded whole.
CastTally round_whole(std::span<float> values, const Quantizer& quantizer, const RandomStream& stream) {
  const std::vector<float> before(values.begin(), values.end());
  round(before, values, quantizer, stream);
  CastTally tally;
  tally_cast(before, values, quantizer.format, tally);
  return tally;
}

}  // namespace

CastCounts round_and_count(std::span<float> values, const Quantizer& quantizer, CastDetail detail,
                           const RandomStream& stream) {
  CastCounts counts{.elements = static_cast<std::int64_t>(values.size()), .tally = {}, .before = {}};
  if (detail == CastDetail::histogram) {
    if (quantizer == Quantizer{fp16} || quantizer.is_identity()) {
      counts.before = round_with_histogram(values, quantizer);
      counts.tally = tally_of(*counts.before);
      return counts;
    }
    counts.before = round_with_histogram(values, {});
  }
  counts.tally = quantizer.rounding == Rounding::stochastic ? round_whole(values, quantizer, stream)
                                                            : round_with_tally(values, quantizer);
  return counts;
}

}  // namespace halfscope
