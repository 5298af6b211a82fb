// OpenMPI's ring: as many blocks as ranks, the first ones an element longer where they do not come out even.
#include <halfscope/arithmetic/all_reduce/detail/sequences.hpp>

namespace halfscope {

AddPlan plan_mpi_ring(const AllReduceBuffer& buffer) {
  if (buffer.elements < buffer.ranks) return plan_butterfly(buffer);
  AddPlan plan;
  plan.sequences.push_back(ascending_sequence(buffer.ranks));
  const std::int64_t whole = buffer.elements / buffer.ranks, longer = buffer.elements % buffer.ranks;
  std::int64_t first = 0;
  for (std::int64_t block = 0; block < buffer.ranks; ++block) {
    const std::int64_t count = whole + (block < longer ? 1 : 0);
    plan.runs.push_back({.first = first, .count = count, .rotation = block});
    first += count;
  }
  return plan;
}

}  // namespace halfscope
