// Splits an all-reduce over threads, and counts what no sum can tell.
#include <halfscope/kernel/reduce/all_reduce.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <halfscope/core/parallel.hpp>
#include <halfscope/format/elements.hpp>
#include <halfscope/kernel/reduce/detail/all_reduce_simd.hpp>

namespace halfscope {
namespace {

/// Elements of a task of write_addends.
constexpr std::size_t addends_per_task = 1 << 15;

/// A plan's runs, as far as they are among the addends, cut where a tile ends.
std::vector<AddRun> pieces_of(const AddPlan& plan, const AddendTiles& addends) {
  std::vector<AddRun> pieces;
  const std::int64_t last = addends.first() + addends.columns();
  for (const AddRun& run : plan.runs) {
    const std::int64_t end = std::min(run.first + run.count, last);
    for (std::int64_t first = std::max(run.first, addends.first()); first < end;) {
      const std::int64_t left = sum_block - (first - addends.first()) % sum_block;
      pieces.push_back(run);
      pieces.back().first = first;
      pieces.back().count = std::min(left, end - first);
      first += pieces.back().count;
    }
  }
  return pieces;
}

bool all_finite(const AddendTiles& addends, std::int64_t column) {
  for (std::int64_t rank = 0; rank < addends.ranks(); ++rank) {
    if (!std::isfinite(ElementReader(addends.at(rank, column), addends.wire())[0])) return false;
  }
  return true;
}

/// Pieces of a plan that are added together.
using Block = std::span<const AddRun>;

std::vector<Block> blocks_of(std::span<const AddRun> pieces, const AddendTiles& addends) {
  const auto tile_of = [&](const AddRun& piece) { return (piece.first - addends.first()) / sum_block; };
  const auto room_of = [](const AddRun& piece) {
    return (piece.count + sum_alignment - 1) / sum_alignment * sum_alignment;
  };
  std::vector<Block> blocks;
  for (std::size_t first = 0, last = 0; first < pieces.size(); first = last) {
    std::int64_t room = 0;
    for (; last < pieces.size() && pieces[last].sequence == pieces[first].sequence &&
           tile_of(pieces[last]) == tile_of(pieces[first]) && room + room_of(pieces[last]) <= sum_block;
         ++last)
      room += room_of(pieces[last]);
    blocks.push_back(pieces.subspan(first, last - first));
  }
  return blocks;
}

/// The means of a block, whose sums and means are `job`'s.
AllReduceCounters mean_of_block(const SumsJob& job, MeansJob means) {
  AllReduceCounters counters;
  for (const AddRun& run : job.runs) counters.elements += run.count;
  counters.adds = counters.elements * (job.addends.ranks() - 1);
  const std::int64_t column = job.runs.front().first - job.addends.first();
  means.sums = {job.sums + column, static_cast<std::size_t>(counters.elements)};
  dispatch_isa([&]<Isa isa>() {
    counters.stagnated = add_ranks_isa<isa>(job);
    counters.merge(divide_sums_isa<isa>(means));
  });
  for (std::int64_t e = 0; e < counters.elements; ++e) {
    const bool finite = std::isfinite(means.sums[static_cast<std::size_t>(e)]);
    if (!finite && all_finite(job.addends, column + e)) ++counters.means_overflowed;
  }
  return counters;
}

AllReduceCounters merged(const std::vector<AllReduceCounters>& parts) {
  AllReduceCounters all;
  for (const AllReduceCounters& part : parts) all.merge(part);
  return all;
}

}  // namespace

void AllReduceCounters::merge(const AllReduceCounters& other) {
  elements += other.elements;
  adds += other.adds;
  stagnated += other.stagnated;
  addends_flushed += other.addends_flushed;
  addends_overflowed += other.addends_overflowed;
  means_flushed += other.means_flushed;
  means_overflowed += other.means_overflowed;
}

AddendTiles::AddendTiles(DType wire, std::int64_t ranks, std::int64_t columns, std::int64_t first)
    : wire_(wire), ranks_(ranks), columns_(columns), first_(first) {
  const std::int64_t tiles = (columns + tile_columns - 1) / tile_columns;
  bytes_.resize(offset(0, tiles * tile_columns) + vector_overhang);
}

void AddendTiles::put(std::int64_t rank, std::span<const std::byte> addends) {
  const std::size_t size = bytes_per_element(wire_);
  if (addends.size() != static_cast<std::size_t>(columns_) * size) {
    throw InvalidArgument(fmt::format("addends of rank {}: {} bytes for {} columns of {}", rank,
                                      addends.size(), columns_, size));
  }
  for (std::int64_t column = 0; column < columns_; column += tile_columns) {
    const auto count = static_cast<std::size_t>(std::min(tile_columns, columns_ - column));
    std::memcpy(bytes_.data() + offset(rank, column),
                addends.data() + static_cast<std::size_t>(column) * size, count * size);
  }
}

AllReduceCounters write_addends(std::span<const float> gradients, DType wire, const DivisionStep& step,
                                std::span<std::byte> addends) {
  const std::size_t size = bytes_per_element(wire);
  if (addends.size() != gradients.size() * size) {
    throw InvalidArgument(fmt::format("write_addends: {} gradients and {} bytes; {} each are wanted",
                                      gradients.size(), addends.size(), size));
  }
  // Here, since it may throw: not in a source that is compiled once per instruction set.
  const FloatFormat wire_format = format_of(wire);
  std::vector<AllReduceCounters> counters((gradients.size() + addends_per_task - 1) / addends_per_task);
  parallel_for_ranges(std::ssize(gradients), std::int64_t{addends_per_task},
                      [&](std::int64_t first, std::int64_t some) noexcept {
                        const auto begin = static_cast<std::size_t>(first);
                        const AddendsJob job{
                            .gradients = gradients.subspan(begin, static_cast<std::size_t>(some)),
                            .wire = wire,
                            .wire_format = wire_format,
                            .step = step,
                            .addends = addends.data() + begin * size};
                        counters[begin / addends_per_task] =
                            dispatch_isa([&]<Isa isa>() { return write_addends_isa<isa>(job); });
                      });
  return merged(counters);
}

AllReduceCounters mean_of_ranks(const AddendTiles& addends, const AddPlan& plan, const AllReduceModel& model,
                                const DivisionStep& step, std::span<float> means) {
  if (std::ssize(means) != addends.columns()) {
    throw InvalidArgument(fmt::format("mean_of_ranks: {} means for {} columns; give one each", means.size(),
                                      addends.columns()));
  }
  const std::vector<AddRun> pieces = pieces_of(plan, addends);
  const std::vector<Block> blocks = blocks_of(pieces, addends);
  std::vector<AllReduceCounters> counters(blocks.size());
  parallel_for(std::ssize(blocks), [&](std::int64_t i) noexcept {
    const Block& block = blocks[static_cast<std::size_t>(i)];
    const SumsJob job{.addends = addends,
                      .sequence = plan.sequences[block.front().sequence],
                      .runs = block,
                      .sum_format = model.sum_format(),
                      .sums = means.data()};
    counters[static_cast<std::size_t>(i)] =
        mean_of_block(job, {.wire_format = model.wire_format(), .step = step});
  });
  return merged(counters);
}

AllReduce::AllReduce(const AllReduceModel& model, const GradientDivision& division,
                     const AllReduceBuffer& buffer)
    : model_(model),
      steps_(division_steps(division, buffer.ranks, model.wire_format())),
      plan_(make_plan(model, buffer)),
      addends_(model.wire, buffer.ranks, buffer.elements),
      own_(static_cast<std::size_t>(buffer.elements) * bytes_per_element(model.wire)) {}

void AllReduce::put(std::int64_t rank, std::span<const float> gradients) {
  counters_.merge(write_addends(gradients, model_.wire, steps_.before, own_));
  addends_.put(rank, own_);
}

AllReduceCounters AllReduce::finish(std::span<float> means) {
  counters_.merge(mean_of_ranks(addends_, plan_, model_, steps_.after, means));
  return std::exchange(counters_, {});
}

}  // namespace halfscope
