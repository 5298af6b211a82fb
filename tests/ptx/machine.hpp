// A device that interprets PTX: its memory, its launches, and counts of executed instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/kernel/gemm/gemm_ordered.hpp>

#include "tests/ptx/global_memory.hpp"
#include "tests/ptx/module.hpp"
#include "tests/ptx/schedule.hpp"

namespace halfscope::ptx {

struct MachineOptions {
  Schedule schedule = Schedule::forward;
  std::uint64_t seed = 0;              ///< seed of shuffled orders
  ComputeCapability capability{8, 0};  ///< decides the model of the tensor core
};

struct Launch {
  std::string_view entry;
  std::uint32_t blocks = 1;
  std::uint32_t threads = 1;  ///< threads of a block
  std::size_t dynamic_shared_bytes = 0;
  std::span<const std::byte> parameters;  ///< laid out as the entry declares them
};

/// How often entries were launched and instructions executed, those of a false guard left out.
struct Coverage {
  std::map<std::string, std::uint64_t, std::less<>> launches;
  std::vector<std::uint64_t> instructions = std::vector<std::uint64_t>(all_opcodes().size());

  /// Executions of all lines called `name`.
  [[nodiscard]] std::uint64_t executed(std::string_view name) const;
};

/// Bytes of shared memory that a block may have at most, static and dynamic: CUDA C++ Programming Guide,
/// "Technical Specifications per Compute Capability".
[[nodiscard]] std::size_t most_shared_bytes(const ComputeCapability& capability);

class Machine {
 public:
  explicit Machine(const MachineOptions& options) : options_(options) {}

  [[nodiscard]] GlobalMemory& memory() { return memory_; }
  [[nodiscard]] const Coverage& coverage() const { return coverage_; }

  /// Runs all blocks to their end. Throws InvalidArgument where the launch does not fit the entry or the
  /// device, Fault where the kernel does something wrong.
  void launch(const Module& module, const Launch& launch);

 private:
  void check(const Module& module, const Entry& entry, const Launch& launch) const;

  MachineOptions options_;
  GlobalMemory memory_;
  Coverage coverage_;
};

}  // namespace halfscope::ptx
