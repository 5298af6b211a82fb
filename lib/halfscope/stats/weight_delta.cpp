// Block by block: the updates, what a format makes of them, and how large they are beside their weights.
#include <halfscope/stats/weight_delta.hpp>

#include <algorithm>
#include <array>
#include <vector>

#include <halfscope/core/detail/equal_sizes.hpp>
#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/update/detail/update_lanes.hpp>
#include <halfscope/kernel/update/update_effect.hpp>
#include <halfscope/stats/lost_updates.hpp>

namespace halfscope {
namespace {

constexpr std::size_t tiles_per_block = update_tiles(ratio_block);

struct Part {
  std::span<const float> before, after;
  std::size_t first_tile;
  std::span<UpdateEffect> tiles;
  FloatFormat format;
};

void count_block(const Part& part, HistogramCounts& ratios) {
  std::array<float, ratio_block> buffer;
  const std::span updates = std::span(buffer).first(part.before.size());
  for (std::size_t i = 0; i < updates.size(); ++i) updates[i] = part.after[i] - part.before[i];
  update_effects(part.before, updates, {.before = {part.format}, .after = {part.format}, .stream = {}},
                 part.first_tile, part.tiles);
  add_update_ratios(part.before, updates, ratios, binade_edges(part.format));
}

/// Block `index` of the whole.
Part take_block(const Part& whole, std::size_t index) {
  const std::size_t start = index * ratio_block, size = std::min(ratio_block, whole.before.size() - start);
  const std::size_t first = index * tiles_per_block;
  return {whole.before.subspan(start, size), whole.after.subspan(start, size), first,
          whole.tiles.subspan(first, update_tiles(size)), whole.format};
}

}  // namespace

WeightDelta count_weight_delta(std::span<const float> before, std::span<const float> after,
                               const FloatFormat& format) {
  detail::check_equal_sizes("count_weight_delta", before.size(), after.size());
  std::vector<UpdateEffect> tiles(update_tiles(before.size()));
  const std::size_t blocks = (before.size() + ratio_block - 1) / ratio_block;
  const std::size_t threads = std::clamp<std::size_t>(blocks, 1, static_cast<std::size_t>(thread_count()));
  std::vector<HistogramCounts> ratios(threads);
  const Part whole{before, after, 0, tiles, format};
  parallel_for(static_cast<std::int64_t>(threads), [&](std::int64_t index) noexcept {
    const auto thread = static_cast<std::size_t>(index);
    for (std::size_t b = blocks * thread / threads; b < blocks * (thread + 1) / threads; ++b)
      count_block(take_block(whole, b), ratios[thread]);
  });
  UpdateEffect total;
  for (const UpdateEffect& tile : tiles) total += tile;
  WeightDelta found{.counters = update_counters({}, std::ssize(before), total),
                    .ratios = ExponentHistogram(ratios.front(), format)};
  for (std::size_t part = 1; part < threads; ++part)
    found.ratios.merge(ExponentHistogram(ratios[part], format));
  return found;
}

}  // namespace halfscope
