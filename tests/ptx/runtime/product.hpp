// The product of two matrices in the device's memory that stands for cuBLAS's.
#pragma once

#include <halfscope/kernel/gemm/device_product.hpp>
#include <halfscope/kernel/gemm/gemm_ordered.hpp>

#include "tests/ptx/global_memory.hpp"

namespace halfscope::ptx {

/// The order of cuBLAS's sums is not specified; this is the plainest that a GPU's units allow. Factors of f16
/// and bf16 go through the tensor core of `capability` with one accumulator per element, as in gemm_ordered.
/// f32 has no tensor core without TF32: its sums are sequential, product and add fused, as the FP32 units
/// multiply. So results differ from sums in double precision, or in another order, as a GPU's do. Throws
/// InvalidArgument for bf16 before compute capability 8.0, Violation as accesses of the memory do.
void multiply(GlobalMemory& memory, const DeviceProduct& product, const ComputeCapability& capability);

}  // namespace halfscope::ptx
