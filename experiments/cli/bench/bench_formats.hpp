// Comparing formats along the first axis of a tensor beside along the last.
#pragma once

#include "experiments/cli/bench/bench.hpp"

namespace halfscope {

/// Counts of MXFP4, NVFP4 and MXFP8 over a matrix of 4096 x 4096 in a file that the system has in memory; in
/// one thread.
[[nodiscard]] BenchResult bench_formats_along_first_axis();

}  // namespace halfscope
