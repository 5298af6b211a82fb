// The ordered product on the device: ldmatrix, mma.sync and cp.async under the block's body.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <halfscope/kernel/detail/blocks.cuh>
#include <halfscope/kernel/gemm/detail/gemm_native.hpp>
#include <halfscope/kernel/gemm/detail/gemm_ordered_block.cuh>
#include <halfscope/kernel/gemm/detail/mma_sync.cuh>
#include <halfscope/kernel/gemm/gemm_ordered.hpp>

namespace halfscope {
namespace {

using ordered::Along;

/// The instructions. Host code has them in name only: nothing calls them there.
struct Device {
  std::uint16_t* memory;

#ifdef __CUDA_ARCH__
  __device__ int thread() const {
    return static_cast<int>(threadIdx.x);
  }
  __device__ int lane() const {
    return static_cast<int>(threadIdx.x % 32);
  }
  __device__ std::int64_t block() const {
    return blockIdx.x;
  }
  __device__ std::uint16_t* shared() const {
    return memory;
  }
  __device__ void synchronize() const {
    __syncthreads();
  }

  static __device__ std::uint32_t address(const void* shared) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  }

  /// `count` elements and zeros after them, 16 bytes in all.
  __device__ void copy_chunk(std::uint16_t* to, const std::uint16_t* from, int count) const {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to)), "l"(from), "r"(2 * count)
                 : "memory");
#else
    uint4 chunk{};
    if (count == 8) {
      chunk = *reinterpret_cast<const uint4*>(from);
    } else {
      std::uint32_t words[4] = {};
#pragma unroll
      for (int i = 0; i < 8; ++i) words[i / 2] |= i < count ? std::uint32_t{from[i]} << i % 2 * 16 : 0u;
      chunk = {words[0], words[1], words[2], words[3]};
    }
    *reinterpret_cast<uint4*>(to) = chunk;
#endif
  }
  __device__ void end_group() const {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
  }
  template <int pending>
  __device__ void wait_for_groups() const {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
  }

  template <bool transposed>
  __device__ void load_matrices(std::uint32_t (&to)[4], const std::uint16_t* from) const {
    if constexpr (transposed) {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                   : "r"(address(from))
                   : "memory");
    } else {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                   : "r"(address(from))
                   : "memory");
    }
  }

  template <typename V>
  __device__ void multiply_16(ordered::Sums<V>& sums, const std::uint32_t (&a)[4], std::uint32_t b0,
                              std::uint32_t b1) const {
    ordered::mma_16(sums, a, b0, b1);
  }
  template <typename V>
  __device__ void multiply_8(ordered::Sums<V>& sums, std::uint32_t a0, std::uint32_t a1,
                             std::uint32_t b) const {
    ordered::mma_8(sums, a0, a1, b);
  }

  template <DType output>
  __device__ std::uint16_t narrowed(float x) const {
    if constexpr (output == DType::f16) return __half_as_ushort(__float2half_rn(x));
    return __bfloat16_as_ushort(__float2bfloat16_rn(x));
  }
#endif
};

template <typename V>
__global__ void __launch_bounds__(ordered::threads, 2)
    ordered_kernel(const __grid_constant__ ordered::Problem problem, DType output) {
#ifdef __CUDA_ARCH__
  extern __shared__ __align__(16) std::uint16_t memory[];
  Device device{memory};
  ordered::run_block<V>(device, problem, output);
#endif
}

bool is_aligned(const void* data, std::int64_t stride, std::size_t bytes, std::size_t element) {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0 &&
         static_cast<std::size_t>(stride) * element % bytes == 0;
}

ordered::Factor factor_of(const DeviceMatrix& matrix, std::int64_t extent) {
  return {static_cast<const std::uint16_t*>(matrix.data), matrix.stride, static_cast<int>(extent),
          is_aligned(matrix.data, matrix.stride, 16, 2)};
}

ordered::Problem problem_of(const DeviceProduct& p) {
  const std::size_t element = bytes_per_element(p.output);
  return {factor_of(p.a, p.rows),
          factor_of(p.b, p.columns),
          static_cast<int>(p.depth),
          p.c,
          p.c_stride,
          is_aligned(p.c, p.c_stride, 2 * element, element)};
}

template <typename V>
void launch(const DeviceProduct& p, cudaStream_t stream) {
  constexpr const char* what = "gemm_ordered";
  cuda::check(cudaFuncSetAttribute(ordered_kernel<V>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   ordered::shared_bytes),
              what);
  const unsigned blocks = cuda::grid_of(ordered::block_count(p.rows, p.columns), what);
  ordered_kernel<V><<<blocks, ordered::threads, ordered::shared_bytes, stream>>>(problem_of(p), p.output);
  cuda::check(cudaGetLastError(), what);
}

template <DType input, DType sum>
void launch_layouts(const DeviceProduct& p, cudaStream_t stream) {
  using enum Along;
  const bool a_along = p.a.layout == MatrixLayout::row_major,
             b_along = p.b.layout == MatrixLayout::transposed;
  if (a_along && b_along) return launch<ordered::Variant<input, sum, depth, depth>>(p, stream);
  if (a_along) return launch<ordered::Variant<input, sum, depth, across>>(p, stream);
  if (b_along) return launch<ordered::Variant<input, sum, across, depth>>(p, stream);
  launch<ordered::Variant<input, sum, across, across>>(p, stream);
}

ComputeCapability capability_of_device() {
  const int capability = cuda::compute_capability();
  return {capability / 10, capability % 10};
}

}  // namespace

std::optional<TensorCore> device_tensor_core() {
  return tensor_core_of_capability(capability_of_device());
}

void gemm_ordered(const DeviceProduct& product, CUstream_st* stream) {
  check_ordered_product(product);
  const TensorCore core = tensor_core_of_capability(capability_of_device());
  if (product.input == DType::bf16) (void)tensor_core_step(core, bf16, fp32);  // throws on Turing
  if (product.rows == 0 || product.columns == 0) return;
  if (product.input == DType::bf16) {
    return launch_layouts<DType::bf16, DType::f32>(product, stream);
  }
  if (product.sum == DType::f16) {
    return launch_layouts<DType::f16, DType::f16>(product, stream);
  }
  launch_layouts<DType::f16, DType::f32>(product, stream);
}

}  // namespace halfscope
