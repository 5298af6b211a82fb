// Page-locked host memory, which copies read and write when they are carried out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace halfscope::ptx {

/// Allocations by address. A copy keeps the identity of what it was given: one freed since then is no longer
/// the same, even where its address is used again.
class HostMemory {
 public:
  /// Bytes that the program has not written are 0xFF.
  [[nodiscard]] void* allocate(std::size_t bytes);
  /// False for an address that allocate did not return, and for a second time.
  [[nodiscard]] bool free(void* memory);
  /// Number of the allocation that contains [memory, memory + bytes); 0 for pageable memory.
  [[nodiscard]] std::uint64_t identity(const void* memory, std::size_t bytes) const;

 private:
  struct Allocation {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
    std::uint64_t identity = 0;
  };
  std::map<std::uintptr_t, Allocation> allocations_;
  std::uint64_t allocated_ = 0;
};

}  // namespace halfscope::ptx
