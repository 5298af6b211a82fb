// What `halfscope bench` times on a CUDA device, in events of its stream.
#pragma once

#include <halfscope/format/stored_type.hpp>

#include "experiments/bench.hpp"

namespace halfscope {

// Each says in `skipped` why there is nothing to measure: a build without CUDA, no device.

/// Rounding to FP16 beside the device's own copy.
[[nodiscard]] BenchResult bench_cuda_round();
/// The ordered product beside cuBLAS with the same types, 4096^3.
[[nodiscard]] BenchResult bench_cuda_ordered(StoredType input, StoredType sum);
/// cuBLAS in FP16 summed in FP32, beside its FP32, 4096^3.
[[nodiscard]] BenchResult bench_cuda_cublas();

}  // namespace halfscope
