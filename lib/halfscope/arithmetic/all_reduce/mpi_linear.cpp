// OpenMPI's linear all-reduce: a reduction to rank 0, which begins with the last rank.
#include <halfscope/arithmetic/all_reduce/detail/sequences.hpp>

#include <utility>

namespace halfscope {

AddPlan plan_mpi_linear(const AllReduceBuffer& buffer) {
  AddSequence steps = ascending_sequence(buffer.ranks);
  for (AddStep& step : steps) step.rank = static_cast<std::int32_t>(buffer.ranks) - 1 - step.rank;
  return one_run(buffer, std::move(steps));
}

}  // namespace halfscope
