// Pools of free memory by size, and copies between the devices.
#include <halfscope/device/memory.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>

#include <halfscope/core/error.hpp>
#include <halfscope/device/detail/device_memory.hpp>
#include <halfscope/device/detail/host_pool.hpp>
#include <halfscope/device/step_graph.hpp>

namespace halfscope {
namespace {

/// Bytes of this thread's arrays on the device: now, and at most.
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

/// The smallest size that a buffer of `bytes` may have: one of eight between powers of two, so that batches
/// whose extents differ a little share their buffers.
constexpr std::size_t size_class(std::size_t bytes) {
  const std::size_t step = std::max(alignment, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

/// Free host memory by size, at most twice as much as was ever in use at once: sizes that a step needs one
/// after the other are all kept.
class HostPool {
 public:
  void* take(std::size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      used_ += bytes;
      most_used_ = std::max(most_used_, used_);
      auto& free = free_[bytes];
      if (!free.empty()) {
        void* memory = free.back();
        free.pop_back();
        kept_ -= bytes;
        return memory;
      }
    }
    if (void* memory = get(bytes)) return memory;
    const std::lock_guard lock(mutex_);
    release_all();
    if (void* memory = get(bytes)) return memory;
    used_ -= bytes;
    throw OutOfMemory(bytes);
  }

  void give_back(void* memory, std::size_t bytes) noexcept {
    try {
      const std::lock_guard lock(mutex_);
      used_ -= bytes;
      if (kept_ + bytes > 2 * most_used_) release_all();
      free_[bytes].push_back(memory);
      kept_ += bytes;
    } catch (const std::bad_alloc&) {
      release(memory);
    }
  }

  [[nodiscard]] HostPoolBytes bytes() {
    const std::lock_guard lock(mutex_);
    return {kept_, most_used_};
  }

 private:
  /// Null where the system has no more.
  static void* get(std::size_t bytes) noexcept {
    return ::operator new (bytes, std::align_val_t{alignment}, std::nothrow);
  }
  static void release(void* memory) noexcept { ::operator delete (memory, std::align_val_t{alignment}); }
  /// Sizes that do not recur: the next steps keep those that do.
  void release_all() noexcept {
    for (auto& [bytes, free] : free_) {
      for (void* memory : free) release(memory);
      free.clear();
    }
    kept_ = 0;
  }

  std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<void*>> free_;
  std::size_t kept_ = 0, used_ = 0, most_used_ = 0;  // bytes
};

/// Never destroyed: a buffer may outlive every static object.
HostPool& host_pool() {
  static auto* const instance = new HostPool;
  return *instance;
}

}  // namespace

HostPoolBytes host_pool_bytes() {
  return host_pool().bytes();
}

void* take_memory(std::size_t bytes, Device device) {
  if (device == Device::cpu) return host_pool().take(size_class(bytes));
  void* memory = take_kept_block(bytes);
  if (memory == nullptr) {
    cut_recording();
    memory = device_memory::allocate(bytes);
  }
  count_device_bytes(static_cast<std::int64_t>(bytes));
  return memory;
}

void give_back_memory(void* memory, std::size_t bytes, Device device) noexcept {
  if (device == Device::cpu) return host_pool().give_back(memory, size_class(bytes));
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
