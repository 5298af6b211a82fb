// How an all-reduce adds up: the order in which the ranks' addends join, and the format that they travel in.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/core/names.hpp>
#include <halfscope/format/formats.hpp>

namespace halfscope {

/// Most ranks of an all-reduce.
inline constexpr std::int64_t most_ranks = 65536;
/// Most partial sums that an order holds at once: a binary tree of most_ranks has no more.
inline constexpr std::int32_t most_partial_sums = 20;

/// A step of a sum over ranks. Partial sums lie on a stack.
struct AddStep {
  enum class Kind : std::uint8_t {
    begin,  ///< a new partial sum: the addend of `rank`
    add,    ///< the last partial sum + the addend of `rank`
    join,   ///< the last partial sum but one + the last, which is gone then
  };
  Kind kind = Kind::begin;
  std::int32_t rank = 0;

  friend bool operator==(const AddStep&, const AddStep&) = default;
};

/// One element's sum over all ranks, each of which is in it once.
using AddSequence = std::vector<AddStep>;

/// Neighbouring elements of a buffer that add up alike: rank r of the sequence is rank (r + rotation) mod N.
struct AddRun {
  std::int64_t first = 0, count = 0;
  std::size_t sequence = 0;
  std::int64_t rotation = 0;
};

/// The order of every add of a buffer. Its runs cover the elements from 0 on, in order.
struct AddPlan {
  std::vector<AddSequence> sequences{};
  std::vector<AddRun> runs{};
};

/// Gradients that one call reduces: a bucket of gradients. `chunk` is the most elements of a rank's chunk in
/// one loop over a ring, which NCCL's tuner chooses; 0: the whole buffer goes round in one loop.
struct AllReduceBuffer {
  std::int64_t ranks = 1;
  std::int64_t elements = 0;
  std::int64_t element_bytes = 2;
  std::int64_t chunk = 0;
};

// The orders. Each makes the plan of a buffer.

/// A ring of NCCL on one channel: chunk c adds ranks c + 1, c + 2, ..., c (mod N). A chunk is the elements
/// left over N, rounded up, up to a multiple of 16 bytes. Source: NCCL 2.28.9, src/device/all_reduce.h.
[[nodiscard]] AddPlan plan_nccl_ring(const AllReduceBuffer& buffer);
/// The double binary tree of NCCL over ranks of a GPU each, on two channels, which halve the buffer: a rank
/// adds its first child's sum to its own addend, then its second child's. The other tree is the mirrored one,
/// or, of an odd number of ranks, the one that is shifted by a rank. Source: NCCL 2.28.9, src/graph/trees.cc.
[[nodiscard]] AddPlan plan_nccl_tree(const AllReduceBuffer& buffer);
/// Recursive doubling: the first ranks beyond a power of two are added in pairs, then neighbours, neighbours
/// of neighbours and so on. OpenMPI's choice for all but long buffers; measured against OpenMPI 4.1.4.
[[nodiscard]] AddPlan plan_butterfly(const AllReduceBuffer& buffer);
/// OpenMPI's ring: block b of N adds ranks b, b + 1, ..., b - 1; of fewer elements than ranks, the butterfly.
[[nodiscard]] AddPlan plan_mpi_ring(const AllReduceBuffer& buffer);
/// OpenMPI's linear order: the last rank first, then down to rank 0.
[[nodiscard]] AddPlan plan_mpi_linear(const AllReduceBuffer& buffer);
/// Ranks 0, 1, ..., N - 1.
[[nodiscard]] AddPlan plan_ascending(const AllReduceBuffer& buffer);

/// Which numbers partial sums are.
enum class PartialSums : std::uint8_t {
  on_the_wire,  ///< sums in the wire's format: every add is rounded to it
  in_fp32,      ///< sums in FP32, rounded to the wire's format at the end
};

struct AllReduceOrder {
  std::string_view name;
  std::string_view summary;
  AddPlan (*plan)(const AllReduceBuffer& buffer);
  PartialSums partial_sums = PartialSums::on_the_wire;
};

/// Models that `halfscope list all-reduces` shows.
inline constexpr std::array all_reduce_orders{
    AllReduceOrder{"nccl_ring", "NCCL's ring, one channel: chunk c adds ranks c + 1, c + 2, ..., c",
                   plan_nccl_ring},
    AllReduceOrder{"nccl_tree", "NCCL's double binary tree, two channels, a GPU per node", plan_nccl_tree},
    AllReduceOrder{"butterfly", "recursive doubling, OpenMPI's choice for short buffers", plan_butterfly},
    AllReduceOrder{"mpi_ring", "OpenMPI's ring: block b adds ranks b, b + 1, ..., b - 1", plan_mpi_ring},
    AllReduceOrder{"mpi_linear", "OpenMPI's linear order: rank N - 1 first, then down to 0", plan_mpi_linear},
    AllReduceOrder{"fp32", "FP32 partial sums, ranks 0, 1, ..., one rounding at the end, as in a switch",
                   plan_ascending, PartialSums::in_fp32},
};

/// An order and the format in which addends and sums travel: FP16, BF16 or FP32. Printed "nccl_ring" for
/// FP16, else "nccl_ring/fp32".
struct AllReduceModel {
  const AllReduceOrder* order = &all_reduce_orders.front();
  DType wire = DType::f16;

  [[nodiscard]] FloatFormat wire_format() const { return format_of(wire); }
  /// Format of the partial sums.
  [[nodiscard]] FloatFormat sum_format() const {
    return order->partial_sums == PartialSums::in_fp32 ? fp32 : wire_format();
  }
  friend bool operator==(const AllReduceModel&, const AllReduceModel&) = default;
};

[[nodiscard]] std::string to_string(const AllReduceModel& model);
/// "ORDER[/WIRE]". Throws InvalidArgument with the nearest order, or naming the formats of a wire.
[[nodiscard]] AllReduceModel parse_all_reduce(std::string_view text);

/// The plan of the order for `buffer`; its element_bytes are the wire's. Throws InvalidArgument for ranks
/// outside 1 to most_ranks.
[[nodiscard]] AddPlan make_plan(const AllReduceModel& model, AllReduceBuffer buffer);

}  // namespace halfscope
