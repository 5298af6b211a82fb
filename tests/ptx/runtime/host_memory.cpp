// Page-locked host memory: allocations by address, each with a number of its own.
#include "tests/ptx/runtime/host_memory.hpp"

#include <cstring>
#include <utility>

namespace halfscope::ptx {

void* HostMemory::allocate(std::size_t bytes) {
  auto memory = std::make_unique<std::byte[]>(bytes);
  std::memset(memory.get(), 0xFF, bytes);
  void* const address = memory.get();
  allocations_[reinterpret_cast<std::uintptr_t>(address)] = {std::move(memory), bytes, ++allocated_};
  return address;
}

bool HostMemory::free(void* memory) {
  return allocations_.erase(reinterpret_cast<std::uintptr_t>(memory)) == 1;
}

std::uint64_t HostMemory::identity(const void* memory, std::size_t bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  auto next = allocations_.upper_bound(address);
  if (next == allocations_.begin()) return 0;
  const auto& [begin, allocation] = *--next;
  return address - begin + bytes <= allocation.size ? allocation.identity : 0;
}

}  // namespace halfscope::ptx
