// Counts the floats of an array on the device, and rounds them in the same pass: each thread takes a run of
// elements, far apart so that neighbouring threads read neighbouring ones.
#include <halfscope/kernel/counted_round.hpp>

#include <halfscope/core/memory.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/counters.cuh>
#include <halfscope/kernel/launch.cuh>
#include <halfscope/kernel/round.hpp>

namespace halfscope::cuda {
namespace {

constexpr std::int64_t run = 16;  // elements of a thread

/// What becomes of element i, and whether it is written.
struct LeaveAsItIs {
  static constexpr bool writes = false;
  HALFSCOPE_HD float operator()(float x, std::int64_t) const { return x; }
};

template <Rounding rounding>
struct RoundElement {
  static constexpr bool writes = true;
  RoundingGrid grid;
  RandomStream stream;
  HALFSCOPE_HD float operator()(float x, std::int64_t i) const {
    std::uint32_t random_bits = 0;
    if constexpr (rounding == Rounding::stochastic)
      random_bits = rounding_bits(stream, static_cast<std::uint64_t>(i));
    return round_on_grid<rounding>(x, grid, random_bits);
  }
};

/// Elements by index; `keep` tells whether there is one.
template <typename Value>
struct ValuesOf {
  Value* values;
  HALFSCOPE_HD bool keep(std::int64_t) const { return true; }
  HALFSCOPE_HD float operator()(std::int64_t i) const { return values[i]; }
};

struct RatiosOf {
  const float* weights;
  const float* updates;
  HALFSCOPE_HD bool keep(std::int64_t i) const { return weights[i] != 0 && updates[i] != 0; }
  HALFSCOPE_HD float operator()(std::int64_t i) const {
    return from_bits(magnitude_bits(updates[i] / weights[i]));
  }
};

template <typename Source, typename Counter, typename Round>
struct CountedRound {
  Source source;
  std::int64_t count;
  Counter counter;
  Round round;
  std::uint32_t* largest;  ///< magnitude of the finite ones, as bits

  HALFSCOPE_HD void operator()(std::int64_t thread, BlockBins to) const {
    Counter own = counter;
    std::uint32_t here = 0;
    const std::int64_t threads = (count + run - 1) / run;
    for (std::int64_t i = thread; i < count; i += threads) {
      if (!source.keep(i)) continue;
      const float x = source(i), rounded = round(x, i);
      own(x, rounded, to);
      const std::uint32_t magnitude = magnitude_bits(x);
      if (magnitude < infinity_bits && magnitude > here) here = magnitude;
      if constexpr (Round::writes) source.values[i] = rounded;
    }
    own.finish(to);
    if (here != 0) atomic_max(largest, here);
  }
};

/// Counts of bins, and the largest finite magnitude.
struct Found {
  std::vector<std::int64_t> counts;
  float max_abs = 0;
};

/// The counts of `count` elements, which come to the host with the largest magnitude in one copy.
template <typename Source, typename Counter, typename Round>
Found count_and_round(std::int64_t count, const Source& source, const Counter& counter, const Round& round,
                      std::size_t bin_count) {
  auto memory = Memory<std::int64_t>::zeros(bin_count + 1);
  const std::span<std::int64_t> totals = memory.values().first(bin_count);
  auto* const largest = reinterpret_cast<std::uint32_t*>(memory.data() + bin_count);
  count_each((count + run - 1) / run, totals,
             CountedRound<Source, Counter, Round>{source, count, counter, round, largest}, "counted_round");
  Found found{memory.to_host(), 0};
  found.max_abs = from_bits(static_cast<std::uint32_t>(found.counts.back()));
  return found;
}

/// The same with the rounding of `quantizer`; an identity does not round at all.
template <typename Counter>
Found count_and_round(std::span<float> values, const Counter& counter, const Quantizer& quantizer,
                      const RandomStream& stream, std::size_t bin_count) {
  const ValuesOf<float> source{on_device(values)};
  const auto count = static_cast<std::int64_t>(values.size());
  const RoundingGrid grid = rounding_grid(quantizer);
  if (quantizer.is_identity()) return count_and_round(count, source, counter, LeaveAsItIs{}, bin_count);
  const auto rounded = [&]<Rounding rounding>() {
    return count_and_round(count, source, counter, RoundElement<rounding>{grid, stream}, bin_count);
  };
  switch (quantizer.rounding) {
    case Rounding::nearest_away:
      return rounded.template operator()<Rounding::nearest_away>();
    case Rounding::toward_zero:
      return rounded.template operator()<Rounding::toward_zero>();
    case Rounding::up:
      return rounded.template operator()<Rounding::up>();
    case Rounding::down:
      return rounded.template operator()<Rounding::down>();
    case Rounding::to_odd:
      return rounded.template operator()<Rounding::to_odd>();
    case Rounding::stochastic:
      return rounded.template operator()<Rounding::stochastic>();
    case Rounding::nearest_even:
      break;
  }
  return rounded.template operator()<Rounding::nearest_even>();
}

void add_to(const Found& found, const OrderedEdges& edges, HistogramCounts& counts) {
  const Extremes everything{.negative_zeros = 0, .max_finite = 0, .first_field = 0, .last_field = 255};
  add_bins(found.counts.data(), everything, edges, counts);
  for (std::uint32_t binade = 0; binade < subnormal_binades; ++binade) {
    for (std::uint32_t c = 0; c < classes; ++c) {
      add_to_binade(counts.binades.data()[binade], c, found.counts[subnormal_bins + classes * binade + c],
                    edges);
    }
  }
  counts.negative_zeros += found.counts[negative_zero_bin];
  counts.max_abs = std::max(counts.max_abs, found.max_abs);
}

void add_to(const Found& found, CastTally& tally) {
  tally.zeros += found.counts[zeros];
  tally.nonfinite += found.counts[nonfinite];
  tally.flushed += found.counts[flushed];
  tally.subnormal += found.counts[subnormal];
  tally.overflow += found.counts[overflow];
  tally.max_abs = std::max(tally.max_abs, found.max_abs);
}

}  // namespace

void round_with_histogram(std::span<float> values, const Quantizer& quantizer, const BinadeEdges& edges,
                          HistogramCounts& counts) {
  const OrderedEdges ordered(edges);
  add_to(count_and_round(values, HistogramCounter{ordered}, quantizer, {}, histogram_bins), ordered, counts);
}

void round_with_tally(std::span<float> values, const Quantizer& quantizer, const CastLimits& limits,
                      CastTally& tally) {
  add_to(count_and_round(values, TallyCounter{limits}, quantizer, {}, tally_bins), tally);
}

void round_and_compare(std::span<float> values, const Quantizer& quantizer, const RandomStream& stream,
                       CastTally& tally) {
  const std::uint32_t min_normal = rounding_grid(quantizer).min_normal_field << 23;
  add_to(count_and_round(values, ComparingCounter{min_normal}, quantizer, stream, tally_bins), tally);
}

void histogram(std::span<const float> values, HistogramCounts& counts, const BinadeEdges& edges) {
  const OrderedEdges ordered(edges);
  add_to(count_and_round(static_cast<std::int64_t>(values.size()), ValuesOf<const float>{on_device(values)},
                         HistogramCounter{ordered}, LeaveAsItIs{}, histogram_bins),
         ordered, counts);
}

void tally_cast(std::span<const float> values, const CastLimits& limits, CastTally& tally) {
  add_to(count_and_round(static_cast<std::int64_t>(values.size()), ValuesOf<const float>{on_device(values)},
                         TallyCounter{limits}, LeaveAsItIs{}, tally_bins),
         tally);
}

void ratio_histogram(std::span<const float> weights, std::span<const float> updates, const BinadeEdges& edges,
                     HistogramCounts& counts) {
  const OrderedEdges ordered(edges);
  add_to(count_and_round(static_cast<std::int64_t>(weights.size()),
                         RatiosOf{on_device(weights), on_device(updates)}, HistogramCounter{ordered},
                         LeaveAsItIs{}, histogram_bins),
         ordered, counts);
}

}  // namespace halfscope::cuda
