// Counts the floats of an array on the device, and rounds them in the same pass: each thread takes a run of
// elements, far apart so that neighbouring threads read neighbouring ones.
#include <halfscope/kernel/cast/detail/counted_round.hpp>

#include <string>
#include <type_traits>

#include <halfscope/core/detail/equal_sizes.hpp>
#include <halfscope/device/memory.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/cast/detail/counters.cuh>
#include <halfscope/kernel/cast/detail/with_rounding.cuh>
#include <halfscope/kernel/cast/round.hpp>
#include <halfscope/kernel/detail/launch.cuh>

namespace halfscope::cuda {
namespace {

constexpr std::int64_t run = 16;  // elements of a thread

static_assert(cast_counter_bins == cast_bins + 1);

/// Result of element i, and whether it is written.
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

/// Queues the counting of `count` elements into `counters`, of which the last holds the largest magnitude.
template <typename Source, typename Counter, typename Round>
void count_and_round(std::int64_t count, const Source& source, const Counter& counter, const Round& round,
                     std::span<std::int64_t> counters) {
  auto* const largest = reinterpret_cast<std::uint32_t*>(on_device(counters) + counters.size() - 1);
  count_each((count + run - 1) / run, counters.first(counters.size() - 1),
             CountedRound<Source, Counter, Round>{source, count, counter, round, largest}, "counted_round");
}

/// Whether the counts of a cast with `rounding` are a counter's: kernels with others would never run.
template <typename Counter>
constexpr bool is_counted_by(Rounding rounding) {
  if (std::is_same_v<Counter, HistogramCounter>) return rounding == Rounding::nearest_even;
  return is_symmetric(rounding) == std::is_same_v<Counter, CastCounter<Decisive::exact>>;
}

/// The same with the rounding of `quantizer`.
template <typename Counter>
void count_and_round(std::span<float> values, const Counter& counter, const Quantizer& quantizer,
                     const RandomStream& stream, std::span<std::int64_t> counters) {
  const ValuesOf<float> source{on_device(values)};
  const RoundingGrid grid = rounding_grid(quantizer);
  with_rounding(quantizer.rounding, [&]<Rounding rounding>() {
    if constexpr (is_counted_by<Counter>(rounding)) {
      count_and_round(std::ssize(values), source, counter, RoundElement<rounding>{grid, stream}, counters);
    } else {
      throw InvalidArgument("counted_round: this counter has no kernel for the rounding '" +
                            std::string(name_of(rounding)) + "'; count and round apart");
    }
  });
}

/// The same, but an identity does not round at all.
template <typename Counter>
void count_and_maybe_round(std::span<float> values, const Counter& counter, const Quantizer& quantizer,
                           std::span<std::int64_t> counters) {
  if (!quantizer.is_identity()) return count_and_round(values, counter, quantizer, {}, counters);
  count_and_round(std::ssize(values), ValuesOf<float>{on_device(values)}, counter, LeaveAsItIs{}, counters);
}

/// Counters that `queue` adds to zeros on the device; waits for it.
template <typename Queue>
std::vector<std::int64_t> count_now(std::size_t counter_count, const Queue& queue) {
  auto counters = Memory<std::int64_t>::zeros(counter_count);
  queue(counters.values());
  return counters.to_host();
}

}  // namespace

void round_with_histogram(std::span<float> values, const Quantizer& quantizer, const BinadeEdges& edges,
                          std::span<std::int64_t> counters) {
  count_and_maybe_round(values, HistogramCounter{OrderedEdges(edges)}, quantizer, counters);
}

void round_with_counters(std::span<float> values, const Quantizer& quantizer, const CastLimits& limits,
                         std::span<std::int64_t> counters) {
  count_and_maybe_round(values, CastCounter<Decisive::exact>{limits}, quantizer, counters);
}

void round_and_compare(std::span<float> values, const Quantizer& quantizer, const RandomStream& stream,
                       std::span<std::int64_t> counters) {
  const CastCounter<Decisive::rounded> counter{limits_of_rounded(quantizer.format)};
  count_and_round(values, counter, quantizer, stream, counters);
}

void queue_histogram(std::span<const float> values, std::span<std::int64_t> bins, const BinadeEdges& edges) {
  detail::check_equal_sizes("queue_histogram: bins", binned::size, bins.size());
  count_and_round(std::ssize(values), ValuesOf<const float>{on_device(values)},
                  HistogramCounter{OrderedEdges(edges)}, LeaveAsItIs{}, bins);
}

void queue_ratio_histogram(std::span<const float> weights, std::span<const float> updates,
                           std::span<std::int64_t> bins, const BinadeEdges& edges) {
  detail::check_equal_sizes("queue_ratio_histogram", weights.size(), updates.size());
  detail::check_equal_sizes("queue_ratio_histogram: bins", binned::size, bins.size());
  count_and_round(std::ssize(weights), RatiosOf{on_device(weights), on_device(updates)},
                  HistogramCounter{OrderedEdges(edges)}, LeaveAsItIs{}, bins);
}

void histogram(std::span<const float> values, HistogramCounts& counts, const BinadeEdges& edges) {
  const auto queue = [&](std::span<std::int64_t> bins) { queue_histogram(values, bins, edges); };
  add_bins_to(counts, count_now(binned::size, queue), edges);
}

void ratio_histogram(std::span<const float> weights, std::span<const float> updates, const BinadeEdges& edges,
                     HistogramCounts& counts) {
  const auto queue = [&](std::span<std::int64_t> bins) {
    queue_ratio_histogram(weights, updates, bins, edges);
  };
  add_bins_to(counts, count_now(binned::size, queue), edges);
}

void count_cast(std::span<const float> values, const CastLimits& limits, CastCounters& counters) {
  const ValuesOf<const float> source{on_device(values)};
  const auto queue = [&](std::span<std::int64_t> bins) {
    count_and_round(std::ssize(values), source, CastCounter<Decisive::exact>{limits}, LeaveAsItIs{}, bins);
  };
  add_counters(count_now(cast_counter_bins, queue), counters);
}

void add_counters(std::span<const std::int64_t> bins, CastCounters& counters) {
  counters.zeros += bins[zeros];
  counters.nonfinite += bins[nonfinite];
  counters.flushed += bins[flushed];
  counters.subnormal += bins[subnormal];
  counters.overflow += bins[overflow];
  counters.max_abs = std::max(counters.max_abs, from_bits(static_cast<std::uint32_t>(bins.back())));
}

}  // namespace halfscope::cuda
