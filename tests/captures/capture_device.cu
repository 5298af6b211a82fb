// Runs captured sets with mma.sync and cuBLAS: a warp per tile, operands by the manual's fragment layout.
#include <fstream>
#include <regex>

#include <halfscope/kernel/detail/launch.cuh>
#include <halfscope/kernel/gemm/detail/mma_sync.cuh>
#include <halfscope/kernel/gemm/gemm_cublas.hpp>

#include "tests/captures/capture_device.hpp"
#include "tests/captures/capture_fragments.cuh"
#include "tests/support/device_memory.hpp"

namespace halfscope {
namespace {

template <DType input, DType sum>
using Kind = ordered::Variant<input, sum, ordered::Along::depth, ordered::Along::depth>;

template <typename V, int terms>
__global__ void mma_kernel(DeviceTiles tiles, int depth) {
#ifdef __CUDA_ARCH__
  const std::int64_t tile = blockIdx.x;
  const int row = static_cast<int>(threadIdx.x) / 4, pair = static_cast<int>(threadIdx.x) % 4 * 2;
  const std::uint32_t* a = tiles.a + tile * 16 * depth;
  const std::uint32_t* b = tiles.b + tile * depth * 8;
  ordered::Sums<V> sums;
  load_sums(tiles.c + tile * 128, row, pair, sums.of);
  for (int k = pair; k < depth; k += terms) {
    std::uint32_t left[4] = {}, right[2] = {};
    for (int i = 0; i < terms / 4; ++i)
      left[i] = packed_codes<2>(a + std::int64_t{row + i % 2 * 8} * depth + k + i / 2 * 8, 1);
    for (int i = 0; i < terms / 8; ++i) right[i] = packed_codes<2>(b + std::int64_t{k + i * 8} * 8 + row, 8);
    if constexpr (terms == 16) {
      ordered::mma_16(sums, left, right[0], right[1]);
    } else {
      ordered::mma_8(sums, left[0], left[1], right[0]);
    }
  }
  store_sums(sums.of, row, pair, tiles.results + tile * 128);
#endif
}

template <int terms>
void launch_mma(const CaptureSet& set, const DeviceTiles& tiles) {
  const auto blocks = static_cast<unsigned>(set.tiles);
  constexpr auto f16 = DType::f16, f32 = DType::f32;
  if (set.input == CaptureInput::bf16) {
    mma_kernel<Kind<DType::bf16, f32>, terms><<<blocks, 32>>>(tiles, set.depth);
  } else if (set.sum == f16) {
    mma_kernel<Kind<f16, f16>, terms><<<blocks, 32>>>(tiles, set.depth);
  } else {
    mma_kernel<Kind<f16, f32>, terms><<<blocks, 32>>>(tiles, set.depth);
  }
  cuda::check(cudaGetLastError(), "capture: mma.sync");
}

/// By cuBLAS, whose results are then read as they are stored; of one tile.
std::vector<std::uint32_t> run_cublas(const CaptureSet& set, const TileOperands& operands) {
  const TileExtents extents = extents_of(set.instruction);
  const auto outputs = static_cast<std::size_t>(outputs_of(set));
  const bool wide = set.sum == DType::f32;
  const DeviceMemory a(std::vector<std::uint16_t>(operands.a.begin(), operands.a.end())),
      b(std::vector<std::uint16_t>(operands.b.begin(), operands.b.end()));
  const DeviceMemory c(std::vector<std::uint16_t>(outputs * (wide ? 2 : 1)));
  gemm_cublas({.rows = extents.rows,
               .depth = set.depth,
               .columns = extents.columns,
               .input = DType::f16,
               .sum = set.sum,
               .output = set.sum,
               .a = {a.data(), set.depth},
               .b = {b.data(), extents.columns},
               .c = c.data(),
               .c_stride = extents.columns},
              nullptr);
  if (wide) return c.read<std::uint32_t>();
  const std::vector<std::uint16_t> codes = c.read<std::uint16_t>();
  return {codes.begin(), codes.end()};
}

bool is_wgmma(const CaptureSet& set) {
  return set.instruction == CaptureInstruction::wgmma_m64n8k16 ||
         set.instruction == CaptureInstruction::wgmma_m64n8k32;
}

/// "13.0" of CUDA's 13000.
std::string version_of(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

}  // namespace

std::vector<std::uint32_t> run_set(const CaptureSet& set) {
  TileOperands all;
  for (int tile = 0; tile < set.tiles; ++tile) {
    const TileOperands operands = operands_of(set, tile);
    all.a.insert(all.a.end(), operands.a.begin(), operands.a.end());
    all.b.insert(all.b.end(), operands.b.begin(), operands.b.end());
    all.c.insert(all.c.end(), operands.c.begin(), operands.c.end());
  }
  if (set.instruction == CaptureInstruction::cublas) return run_cublas(set, all);
  const DeviceMemory a(all.a), b(all.b), c(all.c), results(all.c);
  const DeviceTiles tiles{
      static_cast<const std::uint32_t*>(a.data()), static_cast<const std::uint32_t*>(b.data()),
      static_cast<const std::uint32_t*>(c.data()), static_cast<std::uint32_t*>(results.data())};
  if (is_wgmma(set)) {
    launch_wgmma(set, tiles);
  } else if (set.input != CaptureInput::f16 && set.input != CaptureInput::bf16) {
    launch_narrow_mma(set, tiles);
  } else if (set.instruction == CaptureInstruction::mma_m16n8k8) {
    launch_mma<8>(set, tiles);
  } else {
    launch_mma<16>(set, tiles);
  }
  return results.read<std::uint32_t>();
}

std::string obstacle_to(const CaptureSet& set) {
  const ComputeCapability found = device_capability();
  if (is_wgmma(set) && (found.major != 9 || found.minor != 0))
    return "wgmma is an instruction of compute capability 9.0";
  if (set.instruction == CaptureInstruction::mma_m16n8k32 && found.major < 9)
    return "needs compute capability 9.0";
  return found.major < 8 ? "needs compute capability 8.0" : "";
}

std::string toolkit_version() {
  return version_of(CUDART_VERSION);
}

CaptureOrigin capture_origin() {
  cudaDeviceProp properties{};
  int device = 0, driver = 0;
  cuda::check(cudaGetDevice(&device), "capture: no CUDA device");
  cuda::check(cudaGetDeviceProperties(&properties, device), "capture: cudaGetDeviceProperties");
  cuda::check(cudaDriverGetVersion(&driver), "capture: cudaDriverGetVersion");
  std::string version = "CUDA " + version_of(driver);
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  if (std::getline(file, line)) {
    std::smatch match;
    if (std::regex_search(line, match, std::regex(R"(\d{3}\.\d+(\.\d+)?)"))) version = match.str();
  }
  return {properties.name, std::to_string(properties.major) + "." + std::to_string(properties.minor), version,
          toolkit_version()};
}

}  // namespace halfscope
