// Asynchronous copies of a thread, global to shared, in groups that it waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/ptx/global_memory.hpp"
#include "tests/ptx/shared_memory.hpp"

namespace halfscope::ptx {

/// `bytes` from `from` to `to`, then zeros up to 16.
struct AsyncCopy {
  std::uint64_t to = 0;
  std::uint64_t from = 0;
  std::size_t bytes = 16;
};

/// Copies are carried out as late as the program allows: when it waits for their group, or when the thread
/// ends.
class AsyncCopies {
 public:
  /// Throws Violation if more than 16 bytes are asked for, or an address is misaligned.
  void issue(std::uint32_t thread, const AsyncCopy& copy, SharedMemory& shared);
  void commit();
  /// Carries out all but the last `pending` groups.
  void wait(std::uint32_t thread, std::size_t pending, const GlobalMemory& global, SharedMemory& shared);
  /// Carries out all, those of no group too.
  void finish(std::uint32_t thread, const GlobalMemory& global, SharedMemory& shared);
  void reset();

 private:
  using Group = std::vector<AsyncCopy>;
  Group open_;
  std::vector<Group> groups_;  ///< the oldest first
};

}  // namespace halfscope::ptx
