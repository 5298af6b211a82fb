// Global memory: allocations by the upper half of their addresses.
#include "tests/ptx/global_memory.hpp"

#include <fmt/format.h>

#include "tests/ptx/fault.hpp"

namespace halfscope::ptx {
namespace {

constexpr std::uint64_t offset_in_slot = 256;

}  // namespace

std::uint64_t GlobalMemory::allocate(std::size_t bytes) {
  const std::uint64_t address = first_address + (slots_.size() << slot_bits) + offset_in_slot;
  const std::size_t slots = ((bytes + offset_in_slot) >> slot_bits) + 1;
  slots_.insert(slots_.end(), slots, static_cast<std::uint32_t>(allocations_.size()));
  allocations_.push_back({address, ByteSpace(fmt::format("allocation {:#x}", address), bytes), true});
  return address;
}

void GlobalMemory::free(std::uint64_t address) {
  Allocation& allocation = find(address);
  if (allocation.address != address) {
    throw Violation(
        fmt::format("{:#x} is freed, which lies inside the allocation {:#x}", address, allocation.address));
  }
  allocation.live = false;
  allocation.bytes = {};
}

void GlobalMemory::fail_find(std::uint64_t address) const {
  const std::uint64_t slot = (address - first_address) >> slot_bits;
  if (slot >= slots_.size()) throw Violation(fmt::format("address {:#x} lies in no allocation", address));
  throw Violation(
      fmt::format("allocation {:#x} is used after it was freed", allocations_[slots_[slot]].address));
}

void GlobalMemory::write(std::uint64_t to, std::span<const std::byte> from) {
  Allocation& allocation = find(to);
  allocation.bytes.write(to - allocation.address, from);
}

void GlobalMemory::read(std::span<std::byte> to, std::uint64_t from) const {
  const Allocation& allocation = find(from);
  allocation.bytes.read(from - allocation.address, to);
}

void GlobalMemory::read_all(std::span<std::byte> to, std::uint64_t from) const {
  const Allocation& allocation = find(from);
  allocation.bytes.read_all(from - allocation.address, to);
}

void GlobalMemory::copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  const Allocation& source = find(from);
  Allocation& target = find(to);
  target.bytes.copy(to - target.address, source.bytes, from - source.address, bytes);
}

void GlobalMemory::fill(std::uint64_t to, std::byte value, std::size_t bytes) {
  Allocation& allocation = find(to);
  allocation.bytes.fill(to - allocation.address, value, bytes);
}

}  // namespace halfscope::ptx
