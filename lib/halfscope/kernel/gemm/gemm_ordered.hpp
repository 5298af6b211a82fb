// Matrix product on the tensor cores of a GPU whose order of adds is fixed, so that a CPU gives the same
// bits.
#pragma once

#include <halfscope/arithmetic/tensor_core.hpp>
#include <halfscope/kernel/gemm/device_product.hpp>

struct CUstream_st;

namespace halfscope {

/// c = a b of f16 or bf16 numbers in device memory, queued on a CUDA stream (nullptr: the default one).
///
/// The exact model: each element of c has one accumulator, which starts at +0 and takes its products k
/// ascending, no partial sum of them is ever formed elsewhere, and it is rounded to `output` once, to nearest
/// even, when it is stored. That is `dot` of `tensor_core_step(core, input, sum)` with `core` the device's
/// (tensor_core_of_capability), and for f32 sums `gemm` with `tensor_core(GENERATION)`; NaNs have another
/// payload. It is issued as mma.sync m16n8k16, which is one step of 16 products on Hopper and Blackwell, two
/// of 8 on Ampere and Ada, and as m16n8k8 on Turing; a rest of at most 8 products is one m16n8k8
/// everywhere, so that the device takes a step where the model does. A rest is filled up with products of
/// zeros. They change nothing: a zero counts as an exponent (`zero_exponent`) that is never above the
/// accumulator's, since an accumulator that is not zero has a larger one and one that is zero has the same.
///
/// Which elements a block computes and how many stages its copies have changes no bit. Rows that start on
/// 16-byte boundaries (data and stride) are copied fastest. Throws InvalidArgument for f32 inputs, as
/// check_device_product does, for a device below compute capability 7.5, or for bf16 below 8.0, and in a
/// build without CUDA; RuntimeFailure if the launch fails.
void gemm_ordered(const DeviceProduct& product, CUstream_st* stream);

/// Checks a product for `gemm_ordered`, beyond check_device_product.
void check_ordered_product(const DeviceProduct& product);

/// A GPU's compute capability: 9.0 for an H100 or H200.
struct ComputeCapability {
  int major = 0;
  int minor = 0;
};

/// The tensor core of that capability, 7.5 or more; throws InvalidArgument below. One that is newer than the
/// newest known is taken for that.
[[nodiscard]] TensorCore tensor_core_of_capability(ComputeCapability capability);

}  // namespace halfscope
