// An order as a newcomer would add it: from the last rank but one down to rank 0, then the last.
#include <halfscope/arithmetic/all_reduce/detail/sequences.hpp>

#include <utility>

namespace halfscope {

AddPlan plan_sample_order(const AllReduceBuffer& buffer) {
  AddSequence steps = ascending_sequence(buffer.ranks);
  for (AddStep& step : steps) {
    const std::int64_t down = 2 * buffer.ranks - 2 - step.rank;
    step.rank = static_cast<std::int32_t>(down % buffer.ranks);
  }
  return one_run(buffer, std::move(steps));
}

}  // namespace halfscope
