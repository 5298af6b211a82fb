// Means of random gradients over ranks, by order and division, against the exact means.
#pragma once

#include <vector>

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// A row for each kind of gradients, number of ranks, order and division, in this order. All travel in FP16.
[[nodiscard]] std::vector<AllReduceRow> all_reduce_table();

}  // namespace halfscope
