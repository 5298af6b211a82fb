// The device behind the stand-in for CUDA's runtime: programs, streams, memory and the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>

#include "tests/ptx/machine.hpp"
#include "tests/ptx/runtime/host_memory.hpp"
#include "tests/ptx/runtime/programs.hpp"
#include "tests/ptx/runtime/streams.hpp"

namespace halfscope::ptx {

/// Where device memory comes from: cudaMalloc, or cudaMallocAsync's pool.
enum class MemorySource : std::uint8_t { device, pool };

/// One device. A failure of its work is thrown out of the call that forces the work.
class Runtime {
 public:
  Runtime();

  /// Held during each call: calls may come from several threads.
  [[nodiscard]] std::mutex& mutex() { return mutex_; }

  [[nodiscard]] Programs& programs() { return programs_; }
  [[nodiscard]] Streams& streams() { return streams_; }
  [[nodiscard]] HostMemory& host_memory() { return host_memory_; }
  [[nodiscard]] GlobalMemory& memory() { return machine_.memory(); }
  [[nodiscard]] ComputeCapability capability() const { return options_.capability; }

  /// `arguments` points to each argument of the kernel.
  cudaError_t launch(const void* host_function, const LaunchConfiguration& launch, void** arguments);

  [[nodiscard]] std::uint64_t allocate(std::size_t bytes, MemorySource source);
  void free(std::uint64_t address);
  [[nodiscard]] bool is_of_pool(std::uint64_t address) const { return pool_.contains(address); }
  /// Either side may be the host's or the device's.
  void copy(void* to, const void* from, std::size_t bytes);
  void fill(void* to, int value, std::size_t bytes);

  /// The end of the process: carries out what is queued and writes the coverage that was asked for. Ends the
  /// process with status 1 and a line on stderr where that fails.
  void finish() noexcept;

 private:
  void write_coverage();
  void write_mutants();

  std::mutex mutex_;
  MachineOptions options_;
  Machine machine_;
  Programs programs_;
  Streams streams_;
  HostMemory host_memory_;
  std::set<std::uint64_t> pool_;  ///< addresses
  std::string coverage_file_;     ///< empty: none is asked for
  std::string mutants_file_;      ///< file for the list of mutants; empty: none is asked for
};

/// Made at its first use: kernels register before main begins.
[[nodiscard]] Runtime& runtime();

}  // namespace halfscope::ptx
