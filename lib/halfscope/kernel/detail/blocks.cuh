// Runs blocks of threads that share memory, pass by pass: on the device, and in a build without CUDA one
// after the other on the simulated one.
#pragma once

#include <string>

#include <halfscope/kernel/detail/launch.cuh>

#if !defined(__CUDACC__)
#include <memory>
#include <vector>
#endif

namespace halfscope::cuda {

/// The most blocks of a launch, along the one dimension that all grids here have. Source: CUDA C++
/// Programming Guide, technical specifications per compute capability.
inline constexpr std::int64_t most_grid_blocks = (std::int64_t{1} << 31) - 1;

/// `blocks` as CUDA takes it. Throws InvalidArgument where there are more than a launch can have, which
/// would otherwise be cut off to 32 bits.
[[nodiscard]] inline unsigned grid_of(std::int64_t blocks, const char* what) {
  if (blocks <= most_grid_blocks) return static_cast<unsigned>(blocks);
  throw InvalidArgument(std::string(what) + ": " + std::to_string(blocks) +
                        " blocks of threads; a launch has 2^31 - 1 at most: use a smaller batch");
}

/// A thread of a block.
struct BlockThread {
  std::int64_t block;
  int thread;
};

#if defined(__CUDACC__)
template <typename Body>
__global__ void __launch_bounds__(Body::threads) block_kernel(std::int64_t passes, Body body) {
  __shared__ typename Body::Shared shared;
  typename Body::State state;
  const BlockThread here{blockIdx.x, static_cast<int>(threadIdx.x)};
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    body.fill(here, pass, shared);
    __syncthreads();
    body.use(here, pass, shared, state);
    __syncthreads();
  }
  body.finish(here, state);
}
#endif

/// Queues `blocks` blocks of Body::threads threads. Each thread has a Body::State of its own, each block a
/// Body::Shared; in every pass all threads call body.fill(here, pass, shared), and when all have,
/// body.use(here, pass, shared, state); after the last pass body.finish(here, state). Throws InvalidArgument
/// where the blocks are too many for a launch.
template <typename Body>
void for_each_block(std::int64_t blocks, std::int64_t passes, const Body& body, const char* what) {
  if (blocks <= 0) return;
  [[maybe_unused]] const unsigned grid = grid_of(blocks, what);
#if defined(__CUDACC__)
  block_kernel<<<grid, Body::threads, 0, stream()>>>(passes, body);
  check(cudaGetLastError(), what);
#else
  const device_memory::SimulatedLaunch launch;
  const auto shared = std::make_unique<typename Body::Shared>();
  for (std::int64_t block = 0; block < blocks; ++block) {
    std::vector<typename Body::State> states(static_cast<std::size_t>(Body::threads));
    const auto for_threads = [&](const auto& run) {
      for (int thread = 0; thread < Body::threads; ++thread)
        run(BlockThread{block, thread}, states[static_cast<std::size_t>(thread)]);
    };
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      for_threads([&](const BlockThread& here, auto&) { body.fill(here, pass, *shared); });
      for_threads([&](const BlockThread& here, auto& state) { body.use(here, pass, *shared, state); });
    }
    for_threads([&](const BlockThread& here, auto& state) { body.finish(here, state); });
  }
#endif
}

}  // namespace halfscope::cuda
