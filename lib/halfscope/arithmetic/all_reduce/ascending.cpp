// The ranks in ascending order.
#include <halfscope/arithmetic/all_reduce/detail/sequences.hpp>

namespace halfscope {

AddPlan plan_ascending(const AllReduceBuffer& buffer) {
  return one_run(buffer, ascending_sequence(buffer.ranks));
}

}  // namespace halfscope
