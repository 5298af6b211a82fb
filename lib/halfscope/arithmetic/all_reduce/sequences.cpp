// Add sequences that several orders have in common.
#include <halfscope/arithmetic/all_reduce/detail/sequences.hpp>

#include <utility>

namespace halfscope {

AddSequence ascending_sequence(std::int64_t ranks) {
  AddSequence steps(static_cast<std::size_t>(ranks));
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    steps[static_cast<std::size_t>(rank)] = {rank == 0 ? AddStep::Kind::begin : AddStep::Kind::add,
                                             static_cast<std::int32_t>(rank)};
  }
  return steps;
}

AddPlan one_run(const AllReduceBuffer& buffer, AddSequence sequence) {
  AddPlan plan;
  plan.sequences.push_back(std::move(sequence));
  if (buffer.elements > 0) plan.runs.push_back({.first = 0, .count = buffer.elements});
  return plan;
}

}  // namespace halfscope
