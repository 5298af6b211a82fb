// Runs the bodies of kernels over indices: on the device, and in a build without CUDA on the simulated one,
// where the same *.cu files are compiled as C++.
#pragma once

#if defined(__CUDACC__)
#include <halfscope/device/detail/device_cuda.cuh>
#else
#include <halfscope/device/detail/device_simulated.hpp>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <halfscope/core/error.hpp>
#include <halfscope/core/host_device.hpp>
#include <halfscope/format/elements.hpp>

namespace halfscope::cuda {

/// The memory of `values`, for a body to keep. On the simulated device it throws RuntimeFailure where that is
/// not the device's: a kernel must never be handed memory of the host.
template <typename T>
[[nodiscard]] T* on_device([[maybe_unused]] std::span<T> values) {
#if !defined(__CUDACC__)
  if (!values.empty() && !device_memory::is_simulated(values.data()))
    throw RuntimeFailure("simulated device: a kernel was given memory of the host");
#endif
  return values.data();
}

/// Numbers of any storage, on the device.
[[nodiscard]] inline ElementReader on_device(const ConstArrayView& values) {
  return {on_device(std::span(static_cast<const std::byte*>(values.data), values.size())), values.storage};
}
[[nodiscard]] inline ElementWriter on_device(const ArrayView& values) {
  return {on_device(std::span(static_cast<std::byte*>(values.data), values.size())), values.storage};
}

/// *to = max(*to, value), whichever threads do it in whatever order. Most find a larger value there already:
/// to read it takes less than to wait for one another.
HALFSCOPE_HD void atomic_max(std::uint32_t* to, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  if (*static_cast<volatile std::uint32_t*>(to) < value) atomicMax(to, value);
#else
  *to = std::max(*to, value);
#endif
}

/// *to += value; integers, so the order does not matter.
HALFSCOPE_HD void atomic_add(std::int64_t* to, std::int64_t value) {
#if defined(__CUDA_ARCH__)
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
#else
  *to += value;
#endif
}

/// Counters that a block of threads shares.
struct BlockBins {
  std::uint32_t* bins;
  HALFSCOPE_HD void count(std::uint32_t bin, std::uint32_t times = 1) const {
#if defined(__CUDA_ARCH__)
    atomicAdd(bins + bin, times);
#else
    bins[bin] += times;
#endif
  }
};

inline constexpr int most_bins = 12000;  ///< fit the shared memory of every device

#if defined(__CUDACC__)

inline constexpr std::int64_t block_threads = 256;

template <typename Body>
__global__ void for_each_kernel(std::int64_t count, Body body) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) body(i);
}

/// The copies of its bins that a block has, so that neighbouring threads, which often count in the same bin,
/// do not wait for each other; with an odd distance between them one bin's copies lie in different banks.
struct BinCopies {
  int bins, copies, distance;
  explicit BinCopies(int bin_count)
      : bins(bin_count),
        copies(std::clamp(9000 / (bin_count | 1), 1, 32)),
        distance(copies == 1 ? bin_count : bin_count | 1) {}
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(copies) * static_cast<std::size_t>(distance) * sizeof(std::uint32_t);
  }
};

template <typename Body>
__global__ void count_each_kernel(std::int64_t count, BinCopies copies, std::int64_t* totals, Body body) {
  extern __shared__ std::uint32_t shared_bins[];
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int word = thread; word < copies.copies * copies.distance; word += threads) shared_bins[word] = 0;
  __syncthreads();
  const BlockBins own{shared_bins + thread % copies.copies * copies.distance};
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride)
    body(i, own);
  __syncthreads();
  for (int bin = thread; bin < copies.bins; bin += threads) {
    std::int64_t total = 0;
    for (int copy = 0; copy < copies.copies; ++copy) total += shared_bins[copy * copies.distance + bin];
    if (total != 0) atomic_add(totals + bin, total);
  }
}

/// Enough blocks for `count` threads, `most` at most.
[[nodiscard]] inline unsigned block_count(std::int64_t count, std::int64_t most) {
  return static_cast<unsigned>(std::min((count + block_threads - 1) / block_threads, most));
}

#endif

/// Queues body(i) once for each i in [0, count); `body` is copied to the device and must own its outputs, so
/// that no result depends on the order. `what` names the operation in the RuntimeFailure of a launch that
/// fails.
template <typename Body>
void for_each(std::int64_t count, const Body& body, [[maybe_unused]] const char* what) {
  if (count <= 0) return;  // an empty grid is an error to CUDA
#if defined(__CUDACC__)
  constexpr std::int64_t most_blocks = 1
                                       << 16;  // enough to fill any device; the kernel strides over the rest
  for_each_kernel<<<block_count(count, most_blocks), block_threads, 0, stream()>>>(count, body);
  check(cudaGetLastError(), what);
#else
  const device_memory::SimulatedLaunch launch;
  for (std::int64_t i = 0; i < count; ++i) body(i);
#endif
}

/// Queues body(i, bins) once for each i in [0, count), which counts by bins.count(bin), and adds the counts
/// of [0, bins) to `totals`, which are on the device. At most `most_bins` bins.
template <typename Body>
void count_each(std::int64_t count, std::span<std::int64_t> totals, const Body& body,
                [[maybe_unused]] const char* what) {
  if (count <= 0) return;
  std::int64_t* const to = on_device(totals);
#if defined(__CUDACC__)
  constexpr std::int64_t most_blocks = 2048;  // each adds all its bins to the totals at its end
  const BinCopies copies(static_cast<int>(totals.size()));
  count_each_kernel<<<block_count(count, most_blocks), block_threads, copies.bytes(), stream()>>>(
      count, copies, to, body);
  check(cudaGetLastError(), what);
#else
  const device_memory::SimulatedLaunch launch;
  constexpr std::int64_t piece = 1 << 30;  // below what 32 bits count
  for (std::int64_t first = 0; first < count; first += piece) {
    std::uint32_t bins[most_bins] = {};
    for (std::int64_t i = first; i < std::min(count, first + piece); ++i) body(i, BlockBins{bins});
    for (std::size_t bin = 0; bin < totals.size(); ++bin) to[bin] += bins[bin];
  }
#endif
}

}  // namespace halfscope::cuda
