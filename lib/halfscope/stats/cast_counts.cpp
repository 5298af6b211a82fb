// Counting casts: from the histogram where there is one of a cast to FP16, else by comparing before and
// after.
#include <halfscope/stats/cast_counts.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <halfscope/core/parallel.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/cast/detail/counted_round.hpp>
#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/stats/what_if.hpp>

namespace halfscope {
namespace {

/// Elements below which another thread, and other counts to merge, cost more than they save.
constexpr std::int64_t smallest_share = 16384;
/// Elements that are counted and rounded at a time, within the innermost cache.
constexpr std::size_t cast_tile = 4096;
/// The same for a histogram, within the second cache: its tables take longer to empty.
constexpr std::size_t histogram_block = 65536;

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

/// The histogram of the values that are there before each share is rounded in place.
ExponentHistogram round_with_histogram(std::span<float> values, const Quantizer& quantizer) {
  auto parts =
      count_shares<ExponentHistogram>(values, [&](ExponentHistogram& counts, std::span<float> share) {
        for (std::size_t start = 0; start < share.size(); start += histogram_block) {
          const std::span<float> here = share.subspan(start, std::min(histogram_block, share.size() - start));
          counts.add(here);
          if (!quantizer.is_identity()) round(here, here, quantizer);
        }
      });
  for (std::size_t i = 1; i < parts.size(); ++i) parts[0].merge(parts[i]);
  return parts[0];
}

CastCounters counters_of_cast(const ExponentHistogram& before) {
  const WhatIf cast = what_if(before, 0);  // the values carry their scale already
  return {.zeros = before.zeros(),
          .nonfinite = before.infinities() + before.nans(),
          .flushed = cast.flushed,
          .subnormal = cast.subnormal,
          .overflow = cast.overflow,
          .max_abs = before.max_abs()};
}

/// The smallest magnitude that rounds to at least `limit`, as FP32 bits, by bisection: rounding is monotonic.
std::uint32_t smallest_rounding_to(std::uint32_t limit, const Quantizer& quantizer) {
  std::uint32_t low = 0, high = infinity_bits;  // a saturating format's infinity stays where it is
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (magnitude_bits(round(from_bits(middle), quantizer)) >= limit) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

CastLimits find_limits(const Quantizer& quantizer) {
  const CastLimits rounded = limits_of_rounded(quantizer.format);
  return {.nonzero = smallest_rounding_to(rounded.nonzero, quantizer),
          .normal = smallest_rounding_to(rounded.normal, quantizer),
          .infinite = smallest_rounding_to(rounded.infinite, quantizer)};
}

/// Limits of a cast to `quantizer`. The last ones are kept: most casts are to the format of the one before.
CastLimits limits_of(const Quantizer& quantizer) {
  thread_local std::optional<std::pair<Quantizer, CastLimits>> latest;
  if (!latest || latest->first != quantizer) latest.emplace(quantizer, find_limits(quantizer));
  return latest->second;
}

/// Limits by which a cast is counted: an identity as if it were to FP16.
CastLimits counted_limits(const Quantizer& quantizer) {
  return limits_of(quantizer.is_identity() ? Quantizer{fp16} : quantizer);
}

CastCounters round_with_counters(std::span<float> values, const Quantizer& quantizer) {
  const CastLimits limits = counted_limits(quantizer);
  const auto parts = count_shares<CastCounters>(values, [&](CastCounters& counters, std::span<float> share) {
    for (std::size_t start = 0; start < share.size(); start += cast_tile) {
      const std::span<float> here = share.subspan(start, std::min(cast_tile, share.size() - start));
      count_cast(here, limits, counters);
      if (!quantizer.is_identity()) round(here, here, quantizer);
    }
  });
  CastCounters all;
  for (const CastCounters& part : parts) merge(all, part);
  return all;
}

/// Whether the magnitude of a number decides what the cast makes of it; an identity rounds in no way.
bool magnitude_decides(const Quantizer& quantizer) {
  return quantizer.is_identity() || is_symmetric(quantizer.rounding);
}

/// Where the magnitude alone does not decide: the array is rounded whole, since a stochastic stream is
/// indexed by element, and compared with what it was.
CastCounters round_and_compare(std::span<float> values, const Quantizer& quantizer,
                               const RandomStream& stream) {
  const std::vector<float> before(values.begin(), values.end());
  round(before, values, quantizer, stream);
  CastCounters counters;
  count_rounded(before, values, quantizer.format, counters);
  return counters;
}

/// Whether the histogram of the exact values tells all that the cast does.
bool histogram_tells_all(const Quantizer& quantizer) {
  return quantizer == Quantizer{fp16} || quantizer.is_identity();
}

}  // namespace

CastCounts round_and_count(std::span<float> values, const Quantizer& quantizer, CastDetail detail,
                           const RandomStream& stream) {
  if (active_device() == Device::cuda) {
    Readback readback;
    QueuedCast cast(quantizer, detail, readback);
    cast.round_and_count(values, stream, readback);
    readback.read();
    return cast.counts(readback);
  }
  CastCounts counts{.elements = static_cast<std::int64_t>(values.size()), .counters = {}, .before = {}};
  if (detail == CastDetail::histogram) {
    if (histogram_tells_all(quantizer)) {
      counts.before = round_with_histogram(values, quantizer);
      counts.counters = counters_of_cast(*counts.before);
      return counts;
    }
    counts.before = round_with_histogram(values, {});
  }
  counts.counters = magnitude_decides(quantizer) ? round_with_counters(values, quantizer)
                                                 : round_and_compare(values, quantizer, stream);
  return counts;
}

QueuedCast::QueuedCast(const Quantizer& quantizer, CastDetail detail, Readback& readback)
    : quantizer_(quantizer) {
  if (detail == CastDetail::histogram) histogram_ = readback.take<std::int64_t>(binned::size);
  if (!histogram_ || !histogram_tells_all(quantizer))
    counters_ = readback.take<std::int64_t>(cuda::cast_counter_bins);
}

void QueuedCast::round_and_count(std::span<float> values, const RandomStream& stream, Readback& readback) {
  elements_ += static_cast<std::int64_t>(values.size());
  if (histogram_) {
    cuda::round_with_histogram(values, counters_ ? Quantizer{} : quantizer_, binade_edges(fp16),
                               readback.device_values(*histogram_));
  }
  if (!counters_) return;
  if (magnitude_decides(quantizer_)) {
    cuda::round_with_counters(values, quantizer_, counted_limits(quantizer_),
                              readback.device_values(*counters_));
  } else {
    cuda::round_and_compare(values, quantizer_, stream, readback.device_values(*counters_));
  }
}

CastCounts QueuedCast::counts(const Readback& readback) const {
  CastCounts counts{.elements = elements_, .counters = {}, .before = {}};
  if (histogram_) {
    HistogramCounts before;
    add_bins_to(before, readback.values(*histogram_), binade_edges(fp16));
    counts.before.emplace(before);
    counts.counters = counters_of_cast(*counts.before);
  }
  if (counters_) {
    counts.counters = {};
    cuda::add_counters(readback.values(*counters_), counts.counters);
  }
  return counts;
}

}  // namespace halfscope
