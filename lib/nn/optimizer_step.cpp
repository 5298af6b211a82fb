// Checks sizes and splits an optimizer's step over the threads, each of which takes its weights block by
// block: what is written of a block is still in the cache when it is read.
#include "lib/nn/optimizer_step.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/update/detail/update_lanes.hpp>

#include "lib/nn/elementwise.hpp"

namespace halfscope {
namespace {

constexpr std::size_t updates_per_thread = 16384;
constexpr std::size_t block_elements = 4096;
constexpr std::size_t watched_block_elements = ratio_block;
static_assert(watched_block_elements % update_effect_tile == 0);

/// Counts of the weights that one thread takes.
struct PartCounts {
  std::uint32_t largest = 0;
  std::int64_t nonzero = 0, lost = 0;
  HistogramCounts ratios{};
};

void check(const WeightUpdate& update, std::size_t rule_slots, const Quantizer& state, StateSlots slots) {
  const std::size_t size = update.weights.size();
  const bool fit = std::all_of(slots.begin(), slots.end(), [&](auto slot) { return slot.size() == size; });
  if (!fit || slots.size() != rule_slots || update.gradient.size() != size) {
    throw InvalidArgument("optimizer update: gradient, state and weights differ in size");
  }
  if (state.rounding == Rounding::stochastic) {
    throw InvalidArgument("optimizer_state cannot be rounded stochastically; choose another rounding");
  }
}

/// Counts the `updates` of `weights`, which are those from element `start` on.
void count_block(const UpdateWatch& watch, std::size_t start, std::span<const float> weights,
                 std::span<const float> updates, PartCounts& counts) {
  std::array<UpdateEffect, watched_block_elements / update_effect_tile> buffer;
  const std::size_t first = start / update_effect_tile;
  const std::span tiles = std::span(buffer).first(update_tiles(updates.size()));
  update_effects(weights, updates, watch.storage, first, tiles);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    counts.nonzero += tiles[i].nonzero;
    counts.lost += tiles[i].lost;
    watch.sums[first + i] = {tiles[i].applied, tiles[i].intended};
  }
  add_update_ratios(weights, updates, counts.ratios);
}

/// Adds them and returns the largest magnitude of the new weights, as bits.
std::uint32_t add_block(std::span<const float> updates, std::span<float> weights) {
  return dispatch_isa([&]<Isa isa>() {
    const auto count = static_cast<std::int64_t>(weights.size());
    ElementwiseLoops<isa>::add(updates.data(), weights.data(), count);
    return ElementwiseLoops<isa>::largest_magnitude_bits(weights.data(), count);
  });
}

void add_to_watch(const PartCounts& part, const UpdateWatch& watch) {
  watch.counters[first_effect_bin] += part.nonzero;
  watch.counters[first_effect_bin + 1] += part.lost;
  add_to_bins(watch.counters.first(binned::size), part.ratios, binade_edges(fp16));
}

/// Calls compute(start, updates) for the updates of each block, from element `start` on.
template <typename Compute>
void update_blocks(const WeightUpdate& update, const Compute& compute) {
  const std::size_t size = update.weights.size();
  const std::size_t block = update.watch ? watched_block_elements : block_elements;
  const std::size_t blocks = (size + block - 1) / block;
  std::vector<PartCounts> parts(
      std::clamp<std::size_t>(size / updates_per_thread, 1, static_cast<std::size_t>(thread_count())));
  parallel_for(std::ssize(parts), [&](std::int64_t index) noexcept {
    const auto part = static_cast<std::size_t>(index);
    std::array<float, watched_block_elements> buffer;
    for (std::size_t b = blocks * part / parts.size(); b < blocks * (part + 1) / parts.size(); ++b) {
      const std::size_t start = b * block;
      const std::span weights = update.weights.subspan(start, std::min(block, size - start));
      const std::span updates = std::span(buffer).first(weights.size());
      compute(start, updates);
      if (update.watch) count_block(*update.watch, start, weights, updates, parts[part]);
      parts[part].largest = std::max(parts[part].largest, add_block(updates, weights));
    }
  });
  for (const PartCounts& part : parts) {
    update.largest[0] = std::max(update.largest[0], part.largest);
    if (update.watch) add_to_watch(part, *update.watch);
  }
}

UpdateRun run_of(const WeightUpdate& update, std::size_t start, std::span<float> updates) {
  return {.gradient = update.gradient.data() + start,
          .unscale = update.unscale,
          .clip = update.clip,
          .weights = update.weights.data() + start,
          .update = updates.data(),
          .count = std::ssize(updates)};
}

template <typename Rule>
void update_on_cpu(const WeightUpdate& update, const Rule& rule, const Quantizer& state, StateSlots slots) {
  update_blocks(update, [&](std::size_t start, std::span<float> updates) {
    std::array<float*, Rule::slots> here;
    for (std::size_t i = 0; i < here.size(); ++i) here[i] = slots[i].data() + start;
    dispatch_isa([&]<Isa isa>() {
      const auto loop = std::get<UpdateLoop<Rule>>(UpdateLoops<isa>::all);
      loop(run_of(update, start, updates), rule, state, here.data());
    });
  });
}

}  // namespace

void optimizer_step(const WeightUpdate& update, const UpdateRule& rule, const Quantizer& state,
                    StateSlots slots) {
  std::visit(
      [&]<typename Rule>(const Rule& known) {
        check(update, Rule::slots, state, slots);
        if (active_device() == Device::cuda) return cuda::optimizer_step(update, rule, state, slots);
        update_on_cpu(update, known, state, slots);
      },
      rule);
}

}  // namespace halfscope
