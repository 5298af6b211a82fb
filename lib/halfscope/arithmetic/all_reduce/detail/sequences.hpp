// Add sequences that several orders have in common.
#pragma once

#include <halfscope/arithmetic/all_reduce.hpp>

namespace halfscope {

/// Ranks 0, 1, ..., `ranks` - 1, one after the other.
[[nodiscard]] AddSequence ascending_sequence(std::int64_t ranks);

/// The whole buffer by one sequence.
[[nodiscard]] AddPlan one_run(const AllReduceBuffer& buffer, AddSequence sequence);

}  // namespace halfscope
