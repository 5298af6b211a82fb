// Global memory: allocations far apart, at addresses that are never used twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tests/ptx/byte_space.hpp"

namespace halfscope::ptx {

[[nodiscard]] inline std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

/// Whether an address lies where those of global memory do.
[[nodiscard]] constexpr bool is_device_address(std::uint64_t address) {
  return address >> 56 == 0x08;
}

/// Every allocation has slots of 4 GiB of its own, the last of them not full, so that an access beside it
/// meets no other, and starts 256 bytes into the first, the alignment that CUDA promises and no more. The
/// addresses are none that a program on the host could read.
class GlobalMemory {
 public:
  [[nodiscard]] std::uint64_t allocate(std::size_t bytes);
  /// Throws Violation for an address that allocate did not return, and for a second time.
  void free(std::uint64_t address);

  // Accesses of the host; they throw Violation as those of a kernel do, but need no alignment.
  void write(std::uint64_t to, std::span<const std::byte> from);
  void read(std::span<std::byte> to, std::uint64_t from) const;
  /// A copy to the host: structs have padding, so bytes never written are no fault.
  void read_all(std::span<std::byte> to, std::uint64_t from) const;
  void copy(std::uint64_t to, std::uint64_t from, std::size_t bytes);
  void fill(std::uint64_t to, std::byte value, std::size_t bytes);

  // Accesses of a kernel, of 1 to 16 bytes, aligned to their size.
  template <std::size_t count>
  void load(std::uint64_t address, std::span<std::byte, count> to) const {
    check_alignment(address, count);
    const Allocation& allocation = find(address);
    allocation.bytes.read_some(address - allocation.address, to);
  }
  template <std::size_t count>
  void store(std::uint64_t address, std::span<const std::byte, count> from) {
    check_alignment(address, count);
    Allocation& allocation = find(address);
    allocation.bytes.write_some(address - allocation.address, from);
  }

 private:
  struct Allocation {
    std::uint64_t address = 0;
    ByteSpace bytes;
    bool live = false;
  };

  static constexpr std::uint64_t first_address = 0x0800'0000'0000'0000;
  static constexpr int slot_bits = 32;

  [[nodiscard]] const Allocation& find(std::uint64_t address) const {
    const std::uint64_t slot = (address - first_address) >> slot_bits;  // a small address wraps around
    if (slot >= slots_.size() || !allocations_[slots_[slot]].live) fail_find(address);
    return allocations_[slots_[slot]];
  }
  [[nodiscard]] Allocation& find(std::uint64_t address) {
    return const_cast<Allocation&>(std::as_const(*this).find(address));
  }
  [[noreturn]] void fail_find(std::uint64_t address) const;

  std::vector<Allocation> allocations_;
  std::vector<std::uint32_t> slots_;  ///< the allocation of each
};

}  // namespace halfscope::ptx
