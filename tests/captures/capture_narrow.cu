// Runs captured sets of TF32 and FP8 with mma.sync: a warp per tile, operands by the manual's fragment
// layout.
#include <halfscope/kernel/detail/launch.cuh>

#include "tests/captures/capture_device.hpp"
#include "tests/captures/capture_fragments.cuh"

namespace halfscope {
namespace {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define HALFSCOPE_MMA_F32(shape_and_types)              \
  asm("mma.sync.aligned." shape_and_types               \
      " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " \
      "{%0, %1, %2, %3};"                               \
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])  \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define HALFSCOPE_MMA_F16(shape_and_types)                                                   \
  asm("mma.sync.aligned." shape_and_types " {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};" \
      : "+r"(c[0]), "+r"(c[1])                                                               \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <CaptureInput input>
__device__ void multiply(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  if constexpr (input == CaptureInput::tf32) {
    HALFSCOPE_MMA_F32("m16n8k8.row.col.f32.tf32.tf32.f32");
  } else if constexpr (input == CaptureInput::f8_e4m3) {
    HALFSCOPE_MMA_F32("m16n8k32.row.col.f32.e4m3.e4m3.f32");
  } else {
    HALFSCOPE_MMA_F32("m16n8k32.row.col.f32.e5m2.e5m2.f32");
  }
}
template <CaptureInput input>
__device__ void multiply(std::uint32_t (&c)[2], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  if constexpr (input == CaptureInput::f8_e4m3) {
    HALFSCOPE_MMA_F16("m16n8k32.row.col.f16.e4m3.e4m3.f16");
  } else {
    HALFSCOPE_MMA_F16("m16n8k32.row.col.f16.e5m2.e5m2.f16");
  }
}
#undef HALFSCOPE_MMA_F32
#undef HALFSCOPE_MMA_F16
#endif

template <CaptureInput input, typename Register, int registers>
__global__ void narrow_kernel(DeviceTiles tiles, int depth) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  constexpr int packed = input == CaptureInput::tf32 ? 1 : 4;
  const std::int64_t tile = blockIdx.x;
  const int row = static_cast<int>(threadIdx.x) / 4, lane = static_cast<int>(threadIdx.x) % 4,
            pair = 2 * lane;
  const std::uint32_t* a = tiles.a + tile * 16 * depth;
  const std::uint32_t* b = tiles.b + tile * depth * 8;
  Register sums[registers];
  load_sums(tiles.c + tile * 128, row, pair, sums);
  for (int first = lane * packed; first < depth; first += 8 * packed) {
    std::uint32_t left[4], right[2];
    for (int i = 0; i < 4; ++i)
      left[i] =
          packed_codes<packed>(a + std::int64_t{row + i % 2 * 8} * depth + first + i / 2 * 4 * packed, 1);
    for (int i = 0; i < 2; ++i)
      right[i] = packed_codes<packed>(b + std::int64_t{first + i * 4 * packed} * 8 + row, 8);
    multiply<input>(sums, left, right);
  }
  store_sums(sums, row, pair, tiles.results + tile * 128);
#endif
}

template <CaptureInput input>
void launch_fp8(const CaptureSet& set, const DeviceTiles& tiles) {
  const auto blocks = static_cast<unsigned>(set.tiles);
  if (set.sum == DType::f32) {
    narrow_kernel<input, float, 4><<<blocks, 32>>>(tiles, set.depth);
  } else {
    narrow_kernel<input, std::uint32_t, 2><<<blocks, 32>>>(tiles, set.depth);
  }
}

}  // namespace

void launch_narrow_mma(const CaptureSet& set, const DeviceTiles& tiles) {
  if (set.input == CaptureInput::tf32) {
    narrow_kernel<CaptureInput::tf32, float, 4><<<static_cast<unsigned>(set.tiles), 32>>>(tiles, set.depth);
  } else if (set.input == CaptureInput::f8_e4m3) {
    launch_fp8<CaptureInput::f8_e4m3>(set, tiles);
  } else {
    launch_fp8<CaptureInput::f8_e5m2>(set, tiles);
  }
  cuda::check(cudaGetLastError(), "capture: mma.sync");
}

}  // namespace halfscope
