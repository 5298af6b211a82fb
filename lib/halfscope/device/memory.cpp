// Pools of free memory by size, and copies between the devices.
#include <halfscope/device/memory.hpp>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>

#include <halfscope/core/error.hpp>
#include <halfscope/device/detail/device_memory.hpp>
#include <halfscope/device/step_graph.hpp>

namespace halfscope {
namespace {

/// Of this thread's arrays on the device.
thread_local constinit std::int64_t device_bytes = 0, peak_bytes = 0;

void count_device_bytes(std::int64_t more) noexcept {
  device_bytes += more;
  peak_bytes = std::max(peak_bytes, device_bytes);
}

}  // namespace

std::int64_t peak_device_bytes() {
  return peak_bytes;
}

void reset_peak_device_bytes() {
  peak_bytes = device_bytes;
}

namespace detail {
namespace {

constexpr std::size_t alignment = 64;

constexpr std::size_t padded(std::size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Free host memory by size.
class HostPool {
 public:
  void* take(std::size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      auto& free = free_[bytes];
      if (!free.empty()) {
        void* memory = free.back();
        free.pop_back();
        return memory;
      }
    }
    void* memory = ::operator new (bytes, std::align_val_t{alignment}, std::nothrow);
    if (memory == nullptr) throw OutOfMemory(bytes);
    return memory;
  }

  void give_back(void* memory, std::size_t bytes) noexcept {
    try {
      const std::lock_guard lock(mutex_);
      free_[bytes].push_back(memory);
    } catch (const std::bad_alloc&) {
      ::operator delete (memory, std::align_val_t{alignment});
    }
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<void*>> free_;
};

/// Never destroyed: a buffer may outlive every static object.
HostPool& host_pool() {
  static auto* const instance = new HostPool;
  return *instance;
}

}  // namespace

void* take_memory(std::size_t bytes, Device device) {
  if (device == Device::cpu) return host_pool().take(padded(bytes));
  void* memory = take_kept_block(bytes);
  if (memory == nullptr) {
    cut_recording();
    memory = device_memory::allocate(bytes);
  }
  count_device_bytes(static_cast<std::int64_t>(bytes));
  return memory;
}

void give_back_memory(void* memory, std::size_t bytes, Device device) noexcept {
  if (device == Device::cpu) return host_pool().give_back(memory, padded(bytes));
  if (!keep_block(memory, bytes)) device_memory::release(memory, bytes);
  count_device_bytes(-static_cast<std::int64_t>(bytes));
}

void copy_memory(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes) {
  using device_memory::Direction;
  if (bytes == 0) return;
  if (to_device == Device::cpu && from_device == Device::cpu) {
    std::memcpy(to, from, bytes);
  } else if (from_device == Device::cpu) {
    device_memory::copy(to, from, bytes, Direction::to_device);
  } else {
    device_memory::copy(to, from, bytes,
                        to_device == Device::cpu ? Direction::to_host : Direction::within_device);
  }
}

void zero_memory(void* memory, std::size_t bytes, Device device) {
  if (bytes == 0) return;
  if (device == Device::cuda) return device_memory::fill_zero(memory, bytes);
  std::memset(memory, 0, bytes);
}

}  // namespace detail
}  // namespace halfscope
