// Modules and kernels that a program registers, with the limits of a kernel's launch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/ptx/machine.hpp"
#include "tests/ptx/mutants.hpp"
#include "tests/ptx/runtime/fat_binary.hpp"

namespace halfscope::ptx {

/// A fat binary; its text is parsed when a kernel of it is first launched.
struct Registered {
  std::vector<EmbeddedText> texts;
  std::optional<Module> module;
};

/// Extents, dynamic shared memory and stream of a launch: the arguments between triple angle brackets.
struct LaunchConfiguration {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

/// A kernel that was found for the device.
struct FoundKernel {
  const Module* module = nullptr;
  const Entry* entry = nullptr;
  std::size_t most_dynamic_bytes = 0;  ///< most dynamic bytes of shared memory
};

/// Fat binaries and kernels by the addresses that the program registers them under.
class Programs {
 public:
  /// For a device of `capability`; the module of `mutant` is parsed with that in it.
  explicit Programs(ComputeCapability capability, std::optional<Mutant> mutant = std::nullopt)
      : capability_(capability), mutant_(std::move(mutant)) {}

  [[nodiscard]] Registered* add(const void* fat_binary);
  void add_kernel(Registered* registered, const void* host_function, std::string name);

  /// The kernel of a host function: cudaErrorInvalidDeviceFunction where there is none,
  /// cudaErrorNoKernelImageForDevice where its code is for newer devices, cudaErrorInvalidPtx where it has
  /// more static shared memory than ptxas allows.
  cudaError_t find(const void* host_function, FoundKernel& kernel);
  /// cudaFuncSetAttribute for a kernel's dynamic shared memory.
  cudaError_t set_most_dynamic_bytes(const void* host_function, int bytes);

  /// Entries of all modules that the device can run, launched or not.
  [[nodiscard]] std::vector<const Entry*> entries();

  /// Mutants of all modules that the device runs.
  [[nodiscard]] std::vector<ListedMutant> mutants() const;
  /// Whether the mutant that was asked for is in code that was used, or none was asked for.
  [[nodiscard]] bool is_mutant_used() const { return !mutant_ || mutant_used_; }
  /// Dynamic shared memory that a launch of `entry` has, of `bytes` that it asked for.
  [[nodiscard]] std::size_t dynamic_bytes(const Entry& entry, std::size_t bytes) const;

 private:
  struct Kernel {
    Registered* registered = nullptr;
    std::string name;
    std::optional<std::size_t> most_dynamic_bytes;
  };
  [[nodiscard]] const EmbeddedText* text_of(const Registered& registered) const;
  [[nodiscard]] const Module* module_of(Registered& registered);

  ComputeCapability capability_;
  std::optional<Mutant> mutant_;
  bool mutant_used_ = false;
  std::vector<std::unique_ptr<Registered>> registered_;
  std::map<const void*, Kernel> kernels_;
};

/// CUDA's status for the launch: cudaErrorInvalidConfiguration for too many blocks or threads, or none;
/// cudaErrorInvalidValue for too much shared memory.
[[nodiscard]] cudaError_t check_launch(const FoundKernel& kernel, const LaunchConfiguration& launch);

}  // namespace halfscope::ptx
