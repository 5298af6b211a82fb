// Cases of `halfscope bench` on a CUDA device, timed by events of its stream.
#pragma once

#include <halfscope/core/dtype.hpp>

#include "experiments/cli/bench/bench.hpp"

namespace halfscope {

/// A pass over memory, which the device times beside a copy of as many bytes.
enum class DevicePass : std::uint8_t {
  round,           ///< to FP16 into another array: 8 bytes an element
  cast,            ///< to FP16 in place, counted by the limits of the cast: 8 bytes
  cast_histogram,  ///< the same with the histogram: 8 bytes
  histogram,       ///< 4 bytes
  adam,            ///< gradient, two moments and weight to moments and weight: 28 bytes
  adam_watched,    ///< the same, lost updates and their ratios counted: 28 bytes
};

// A device must be there. In a build without CUDA each throws InvalidArgument.

[[nodiscard]] BenchResult bench_cuda_pass(DevicePass pass);
/// The ordered product beside cuBLAS with the same types, 4096^3.
[[nodiscard]] BenchResult bench_cuda_ordered(DType input, DType sum);
/// cuBLAS in FP16 summed in FP32, beside its FP32, 4096^3.
[[nodiscard]] BenchResult bench_cuda_cublas();

}  // namespace halfscope
