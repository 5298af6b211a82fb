// Matrix product by cuBLAS: the fastest there is, in an order of its own.
#pragma once

#include <halfscope/kernel/gemm/device_product.hpp>

struct CUstream_st;

namespace halfscope {

/// c = a b in device memory, queued on a CUDA stream (nullptr: the default one): f32 without TF32 or any
/// other shortening of the operands; f16 and bf16 on the tensor cores, summed in f32, split sums included;
/// f16 also summed in f16, split sums included.
///
/// The order of the adds is cuBLAS's choice by shape, version and GPU: the same product gives the same bits
/// again on the same machine, but no CPU model equals them (use gemm_ordered for that). Each thread has a
/// handle per device and stream, made by its first product there and kept until the thread ends; a product
/// that is captured into a CUDA graph must have run once before. Throws InvalidArgument as
/// check_device_product does and in a build without CUDA; RuntimeFailure where CUDA or cuBLAS fails, with the
/// call, file and line.
void gemm_cublas(const DeviceProduct& product, CUstream_st* stream);

}  // namespace halfscope
