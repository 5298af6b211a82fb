// The device behind the stand-in for CUDA's runtime: modules of the program, kernels, streams, recordings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/ptx/machine.hpp"
#include "tests/ptx/runtime/fat_binary.hpp"

namespace halfscope::ptx {

/// A fat binary; its text is parsed when a kernel of it is first launched.
struct Registered {
  std::vector<EmbeddedText> texts;
  std::optional<Module> module;
};

/// Operations of a stream, to be carried out again and again.
using Recording = std::vector<std::function<void()>>;

/// Grid and block of a launch; one dimension each.
struct LaunchShape {
  std::uint32_t blocks = 1;
  std::uint32_t threads = 1;
  std::size_t shared_bytes = 0;
};

/// One device. Operations are carried out when they are queued, or recorded where their stream is captured.
/// Faults of kernels are thrown out of the call that launches them. Calls may come from several threads.
class Runtime {
 public:
  Runtime();

  [[nodiscard]] Registered* add(const void* fat_binary);
  void add_kernel(Registered* registered, const void* host_function, std::string name);

  /// `arguments` points to each argument of the kernel.
  void launch(const void* host_function, const LaunchShape& shape, void** arguments, const void* stream);
  void enqueue(const void* stream, std::function<void()> operation);

  void begin_capture(const void* stream);
  /// The operations since begin_capture; nothing where the stream is not captured.
  [[nodiscard]] std::optional<Recording> end_capture(const void* stream);

  [[nodiscard]] std::uint64_t allocate(std::size_t bytes);
  void free(std::uint64_t address);
  /// Either side may be the host's or the device's.
  void copy(void* to, const void* from, std::size_t bytes);
  void fill(void* to, int value, std::size_t bytes);

  [[nodiscard]] ComputeCapability capability() const { return options_.capability; }

 private:
  struct Kernel {
    Registered* registered = nullptr;
    std::string name;
  };
  [[nodiscard]] const Module& module_of(Registered& registered) const;

  std::recursive_mutex mutex_;
  MachineOptions options_;
  Machine machine_;
  std::vector<std::unique_ptr<Registered>> registered_;
  std::map<const void*, Kernel> kernels_;
  std::map<const void*, Recording> captured_;
};

/// Made at its first use: kernels register before main begins.
[[nodiscard]] Runtime& runtime();

}  // namespace halfscope::ptx
