// Runs captured sets with wgmma: a warpgroup per tile, a in registers, b in shared memory.
#include <halfscope/kernel/detail/launch.cuh>

#include "tests/captures/capture_device.hpp"

namespace halfscope {
namespace {

constexpr int terms = 16, columns = 8;

#ifdef __CUDA_ARCH__
/// PTX, "Matrix descriptor": b's two core matrices of 8 columns by 8 terms lie 128 bytes apart, not swizzled.
__device__ std::uint64_t descriptor_of(const void* shared) {
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(shared));
  constexpr std::uint64_t apart = 128 >> 4;
  return (address & 0x3FFFFu) >> 4 | apart << 16 | apart << 32;
}

__device__ void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0;"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)
      : "memory");
}
__device__ void multiply(std::uint32_t (&c)[2], const std::uint32_t (&a)[4], std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, %6, 1, 1, 1, 0;"
               : "+r"(c[0]), "+r"(c[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)
               : "memory");
}

template <typename Register, int registers>
__device__ void run_tile(const DeviceTiles& tiles, int depth) {
  __shared__ __align__(128) std::uint16_t shared[columns * terms];
  const std::int64_t tile = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x), row = thread / 32 * 16 + thread % 32 / 4,
            pair = thread % 4 * 2;
  const std::uint16_t* a = tiles.a + tile * 64 * depth;
  const std::uint16_t* b = tiles.b + tile * depth * columns;
  const std::uint32_t* c = tiles.c + tile * 64 * columns;
  Register sums[registers];
  for (int i = 0; i < registers; ++i) {
    if constexpr (registers == 4) {
      sums[i] = __uint_as_float(c[(row + i / 2 * 8) * columns + pair + i % 2]);
    } else {
      sums[i] = c[(row + i * 8) * columns + pair] | c[(row + i * 8) * columns + pair + 1] << 16;
    }
  }
  for (int k0 = 0; k0 < depth; k0 += terms) {
    // Core matrix k / 8, in it column, then term: 16 bytes a column.
    const int k = thread / columns, column = thread % columns;
    shared[k / 8 * 64 + column * 8 + k % 8] = b[std::int64_t{k0 + k} * columns + column];
    std::uint32_t left[4];
    for (int i = 0; i < 4; ++i) {
      const std::int64_t at = std::int64_t{row + i % 2 * 8} * depth + k0 + pair + i / 2 * 8;
      left[i] = a[at] | static_cast<std::uint32_t>(a[at + 1]) << 16;
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    multiply(sums, left, descriptor_of(shared));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();
  }
  std::uint32_t* results = tiles.results + tile * 64 * columns;
  for (int i = 0; i < 4; ++i) {
    const int at = (row + i / 2 * 8) * columns + pair + i % 2;
    if constexpr (registers == 4) {
      results[at] = __float_as_uint(sums[i]);
    } else {
      results[at] = sums[i / 2] >> (i % 2 * 16) & 0xFFFFu;
    }
  }
}
#endif

template <typename Register, int registers>
__global__ void wgmma_kernel(DeviceTiles tiles, int depth) {
#ifdef __CUDA_ARCH__
  run_tile<Register, registers>(tiles, depth);
#endif
}

}  // namespace

void launch_wgmma(const CaptureSet& set, const DeviceTiles& tiles) {
  const auto blocks = static_cast<unsigned>(set.tiles);
  if (set.sum == DType::f32) {
    wgmma_kernel<float, 4><<<blocks, 128>>>(tiles, set.depth);
  } else {
    wgmma_kernel<std::uint32_t, 2><<<blocks, 128>>>(tiles, set.depth);
  }
  cuda::check(cudaGetLastError(), "capture: wgmma");
}

}  // namespace halfscope
