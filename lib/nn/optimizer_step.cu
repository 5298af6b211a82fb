// An optimizer's step on the device: a thread takes a run of elements, or where the update is counted
// those of a lane, in whose order its sums are added.
#include <utility>

#include <halfscope/device/memory.hpp>
#include <halfscope/kernel/cast/detail/counters.cuh>
#include <halfscope/kernel/update/detail/update_effect.cuh>

#include "lib/nn/optimizer_step.hpp"

namespace halfscope::cuda {
namespace {

constexpr std::int64_t run = 16;  // elements of a thread that counts nothing

/// A rule's step with its state.
template <typename Step, typename Round>
struct RuleOfState {
  typename Step::template Element<Round> element;
  float* slots[Step::slots];

  HALFSCOPE_HD float operator()(float gradient, float weight, std::int64_t i) const {
    return update(gradient, weight, i, std::make_index_sequence<Step::slots>{});
  }
  template <std::size_t... slot>
  [[nodiscard]] HALFSCOPE_HD float update(float gradient, float weight, std::int64_t i,
                                          std::index_sequence<slot...> /*all*/) const {
    return element(gradient, weight, slots[slot][i]...);
  }
};

/// Updates weight after weight.
template <typename Rule>
struct UpdateWeights {
  Rule rule;
  const float* gradient;
  float unscale, clip;
  float* weights;
  std::uint32_t* largest;
  std::int64_t count;

  [[nodiscard]] HALFSCOPE_HD float update(std::int64_t i) const {
    return rule(gradient[i] * unscale * clip, weights[i], i);
  }
  /// Stores the weight `before` plus its update; `largest_here` is this thread's.
  HALFSCOPE_HD void store(std::int64_t i, float before, float update, std::uint32_t& largest_here) const {
    const float after = before + update;
    weights[i] = after;
    const std::uint32_t magnitude = magnitude_bits(after);
    largest_here = largest_here > magnitude ? largest_here : magnitude;
  }

  HALFSCOPE_HD void operator()(std::int64_t thread) const {
    std::uint32_t largest_here = 0;
    const std::int64_t threads = (count + run - 1) / run;
    for (std::int64_t i = thread; i < count; i += threads) store(i, weights[i], update(i), largest_here);
    atomic_max(largest, largest_here);
  }
};

/// The same with what becomes of the updates.
template <typename Rule>
struct WatchWeights {
  UpdateWeights<Rule> all;
  WeightStorage storage;
  HistogramCounter ratios;
  UpdateSums* sums;  // (tiles, lanes)
  std::uint32_t* largest_ratio;

  HALFSCOPE_HD void operator()(std::int64_t lane, BlockBins bins) const {
    const LaneRange range(lane, all.count);
    LaneEffect effect(storage, range);
    std::uint32_t largest_here = 0, ratio_here = 0;
    for (std::int64_t i = range.first; i < range.last; i += update_effect_lanes) {
      const float update = all.update(i), before = all.weights[i];
      effect.add(i, before, update);
      if (before != 0 && update != 0) {
        const std::uint32_t ratio = magnitude_bits(update / before);
        ratios(from_bits(ratio), 0, bins);
        if (ratio < infinity_bits && ratio > ratio_here) ratio_here = ratio;
      }
      all.store(i, before, update, largest_here);
    }
    effect.finish(sums[lane], bins, first_effect_bin);
    atomic_max(all.largest, largest_here);
    if (ratio_here != 0) atomic_max(largest_ratio, ratio_here);
  }
};

template <typename Rule>
void watch(const UpdateWeights<Rule>& all, const UpdateWatch& to) {
  const auto tiles = static_cast<std::int64_t>(to.sums.size()), lanes = tiles * update_effect_lanes;
  Memory<UpdateSums> lane_sums(static_cast<std::size_t>(lanes));
  auto* const largest_ratio = reinterpret_cast<std::uint32_t*>(on_device(to.counters) + binned::max_abs);
  count_each(lanes, to.counters,
             WatchWeights<Rule>{all, to.storage, HistogramCounter{OrderedEdges(binade_edges(fp16))},
                                on_device(lane_sums.values()), largest_ratio},
             "optimizer_step");
  for_each(tiles, AddTile{on_device(std::span<const UpdateSums>(lane_sums.values())), on_device(to.sums)},
           "optimizer_step");
}

template <typename Rule>
void apply(const WeightUpdate& update, const Rule& rule) {
  const UpdateWeights<Rule> all{.rule = rule,
                                .gradient = on_device(update.gradient),
                                .unscale = update.unscale,
                                .clip = update.clip,
                                .weights = on_device(update.weights),
                                .largest = on_device(update.largest),
                                .count = std::ssize(update.weights)};
  if (update.watch) return watch(all, *update.watch);
  for_each((all.count + run - 1) / run, all, "optimizer_step");
}

template <typename Step, typename Round>
void step_as(const WeightUpdate& update, const Step& step, Round round, StateSlots slots) {
  RuleOfState<Step, Round> rule{.element = typename Step::template Element<Round>(step, round), .slots = {}};
  for (std::size_t i = 0; i < Step::slots; ++i) rule.slots[i] = on_device(slots[i]);
  apply(update, rule);
}

}  // namespace

void optimizer_step(const WeightUpdate& update, const UpdateRule& rule, const Quantizer& state,
                    StateSlots slots) {
  std::visit(
      [&](const auto& step) {
        if (state.is_identity()) return step_as(update, step, KeepState{}, slots);
        step_as(update, step, RoundState{state}, slots);
      },
      rule);
}

}  // namespace halfscope::cuda
