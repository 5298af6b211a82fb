// The loops of an all-reduce, compiled once per instruction set.
#pragma once

#include <halfscope/kernel/detail/dispatch.hpp>
#include <halfscope/kernel/reduce/all_reduce.hpp>

namespace halfscope {

/// Elements of which partial sums are held at a time; each run's begin at a multiple of sum_alignment.
inline constexpr std::int64_t sum_block = AddendTiles::tile_columns;
inline constexpr std::int64_t sum_alignment = 16;
/// Most runs of a block.
inline constexpr std::size_t most_runs = sum_block / sum_alignment;
/// Bytes that may be read behind a tile's last element, since vectors are read whole.
inline constexpr std::size_t vector_overhang = 64;

/// Gradients on their way to the wire.
struct AddendsJob {
  std::span<const float> gradients;
  DType wire;
  FloatFormat wire_format;  ///< format of `wire`
  DivisionStep step;
  std::byte* addends;
};

/// Sums of a block: of runs in one tile that have one sequence. They are added step by step together, since
/// an add waits for the one before it.
struct SumsJob {
  const AddendTiles& addends;
  const AddSequence& sequence;
  std::span<const AddRun> runs;
  FloatFormat sum_format;
  float* sums;  ///< sums of all columns
};

/// Sums on their way to means, in place.
struct MeansJob {
  std::span<float> sums{};
  FloatFormat wire_format;
  DivisionStep step;
};

template <Isa isa>
AllReduceCounters write_addends_isa(const AddendsJob& job);
/// Returns how many adds stagnated.
template <Isa isa>
std::int64_t add_ranks_isa(const SumsJob& job);
/// Counts what the division flushes.
template <Isa isa>
AllReduceCounters divide_sums_isa(const MeansJob& job);

template <>
AllReduceCounters write_addends_isa<Isa::baseline>(const AddendsJob&);
template <>
AllReduceCounters write_addends_isa<Isa::avx2>(const AddendsJob&);
template <>
AllReduceCounters write_addends_isa<Isa::avx512>(const AddendsJob&);
template <>
std::int64_t add_ranks_isa<Isa::baseline>(const SumsJob&);
template <>
std::int64_t add_ranks_isa<Isa::avx2>(const SumsJob&);
template <>
std::int64_t add_ranks_isa<Isa::avx512>(const SumsJob&);
template <>
AllReduceCounters divide_sums_isa<Isa::baseline>(const MeansJob&);
template <>
AllReduceCounters divide_sums_isa<Isa::avx2>(const MeansJob&);
template <>
AllReduceCounters divide_sums_isa<Isa::avx512>(const MeansJob&);

}  // namespace halfscope
