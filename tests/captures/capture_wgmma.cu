// Runs captured sets with wgmma: a warpgroup per tile, a in registers, b in shared memory.
#include <halfscope/kernel/detail/launch.cuh>

#include "tests/captures/capture_device.hpp"
#include "tests/captures/capture_fragments.cuh"

namespace halfscope {
namespace {

constexpr int columns = 8;

/// Numbers in a register; an instruction multiplies eight times as many.
template <CaptureInput input>
constexpr int packed = input == CaptureInput::f16 ? 2 : 4;

#ifdef __CUDA_ARCH__
/// PTX, "Matrix descriptor": b's two core matrices of 8 columns by 8 terms lie 128 bytes apart, not swizzled.
__device__ std::uint64_t descriptor_of(const void* shared) {
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(shared));
  constexpr std::uint64_t apart = 128 >> 4;
  return (address & 0x3FFFFu) >> 4 | apart << 16 | apart << 32;
}

template <CaptureInput input>
__device__ void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint64_t b) {
#define HALFSCOPE_WGMMA(shape_and_types, modifiers)                             \
  asm volatile("wgmma.mma_async.sync.aligned." shape_and_types                  \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1" modifiers ";" \
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                 \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)             \
               : "memory")
  if constexpr (input == CaptureInput::f16) {
    HALFSCOPE_WGMMA("m64n8k16.f32.f16.f16", ", 0");
  } else if constexpr (input == CaptureInput::f8_e4m3) {
    HALFSCOPE_WGMMA("m64n8k32.f32.e4m3.e4m3", "");
  } else {
    HALFSCOPE_WGMMA("m64n8k32.f32.e5m2.e5m2", "");
  }
#undef HALFSCOPE_WGMMA
}
template <CaptureInput input>
__device__ void multiply(std::uint32_t (&c)[2], const std::uint32_t (&a)[4], std::uint64_t b) {
#define HALFSCOPE_WGMMA(shape_and_types, modifiers)                     \
  asm volatile("wgmma.mma_async.sync.aligned." shape_and_types          \
               " {%0, %1}, {%2, %3, %4, %5}, %6, 1, 1, 1" modifiers ";" \
               : "+r"(c[0]), "+r"(c[1])                                 \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)     \
               : "memory")
  if constexpr (input == CaptureInput::f16) {
    HALFSCOPE_WGMMA("m64n8k16.f16.f16.f16", ", 0");
  } else if constexpr (input == CaptureInput::f8_e4m3) {
    HALFSCOPE_WGMMA("m64n8k32.f16.e4m3.e4m3", "");
  } else {
    HALFSCOPE_WGMMA("m64n8k32.f16.e5m2.e5m2", "");
  }
#undef HALFSCOPE_WGMMA
}

template <CaptureInput input, typename Register, int registers>
__device__ void run_tile(const DeviceTiles& tiles, int depth) {
  constexpr int packed_here = packed<input>, terms = 8 * packed_here;
  __shared__ __align__(128) std::uint32_t shared[columns * 8];
  const std::int64_t tile = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x), row = thread / 32 * 16 + thread % 32 / 4,
            pair = thread % 4 * 2, first = thread % 4 * packed_here;
  const std::uint32_t* a = tiles.a + tile * 64 * depth;
  const std::uint32_t* b = tiles.b + tile * depth * columns;
  Register sums[registers];
  load_sums(tiles.c + tile * 64 * columns, row, pair, sums);
  for (int k0 = 0; k0 < depth; k0 += terms) {
    // Core matrix, in it column, then four words of terms: 16 bytes a column.
    if (thread < columns * 8) {
      const int column = thread % 32 / 4, word = thread / 32 * 4 + thread % 4;
      shared[thread] =
          packed_codes<packed_here>(b + std::int64_t{k0 + word * packed_here} * columns + column, columns);
    }
    std::uint32_t left[4];
    for (int i = 0; i < 4; ++i)
      left[i] = packed_codes<packed_here>(
          a + std::int64_t{row + i % 2 * 8} * depth + k0 + first + i / 2 * 4 * packed_here, 1);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    multiply<input>(sums, left, descriptor_of(shared));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();
  }
  store_sums(sums, row, pair, tiles.results + tile * 64 * columns);
}
#endif

template <CaptureInput input, typename Register, int registers>
__global__ void wgmma_kernel(DeviceTiles tiles, int depth) {
#ifdef __CUDA_ARCH__
  run_tile<input, Register, registers>(tiles, depth);
#endif
}

template <CaptureInput input>
void launch(const CaptureSet& set, const DeviceTiles& tiles) {
  const auto blocks = static_cast<unsigned>(set.tiles);
  if (set.sum == DType::f32) {
    wgmma_kernel<input, float, 4><<<blocks, 128>>>(tiles, set.depth);
  } else {
    wgmma_kernel<input, std::uint32_t, 2><<<blocks, 128>>>(tiles, set.depth);
  }
}

}  // namespace

void launch_wgmma(const CaptureSet& set, const DeviceTiles& tiles) {
  if (set.input == CaptureInput::f16) {
    launch<CaptureInput::f16>(set, tiles);
  } else if (set.input == CaptureInput::f8_e4m3) {
    launch<CaptureInput::f8_e4m3>(set, tiles);
  } else {
    launch<CaptureInput::f8_e5m2>(set, tiles);
  }
  cuda::check(cudaGetLastError(), "capture: wgmma");
}

}  // namespace halfscope
