// Comparison of a recording with the one that it is to replace in an executable graph.
#pragma once

#include <cuda_runtime_api.h>

#include "tests/ptx/runtime/operation.hpp"

namespace halfscope::ptx {

/// Whether `changed` has the operations of `present`, in kind, name and order. CUDA's drivers since 11.2 also
/// take another kernel in the place of one; here that is refused, as by older ones.
[[nodiscard]] cudaGraphExecUpdateResult compare(const Recording& present, const Recording& changed);

}  // namespace halfscope::ptx
