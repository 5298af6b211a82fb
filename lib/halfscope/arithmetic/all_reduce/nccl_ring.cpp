// NCCL's ring: the chunk map, and the rank at which each chunk begins.
#include <halfscope/arithmetic/all_reduce/detail/sequences.hpp>

#include <algorithm>

namespace halfscope {
namespace {

constexpr std::int64_t chunk_alignment = 16;  // bytes

/// Elements of a chunk where `left` elements remain.
std::int64_t chunk_of(const AllReduceBuffer& buffer, std::int64_t left) {
  if (buffer.chunk > 0 && left >= buffer.ranks * buffer.chunk) return buffer.chunk;
  const std::int64_t grain = chunk_alignment / buffer.element_bytes;
  const std::int64_t share = (left + buffer.ranks - 1) / buffer.ranks;
  return (share + grain - 1) / grain * grain;
}

}  // namespace

AddPlan plan_nccl_ring(const AllReduceBuffer& buffer) {
  AddPlan plan;
  plan.sequences.push_back(ascending_sequence(buffer.ranks));
  for (std::int64_t first = 0; first < buffer.elements;) {
    const std::int64_t chunk = chunk_of(buffer, buffer.elements - first);
    for (std::int64_t c = 0; c < buffer.ranks && first < buffer.elements; ++c) {
      const std::int64_t count = std::min(chunk, buffer.elements - first);
      plan.runs.push_back({.first = first, .count = count, .rotation = (c + 1) % buffer.ranks});
      first += count;
    }
  }
  return plan;
}

}  // namespace halfscope
