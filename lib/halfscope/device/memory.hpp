// Owning memory for numbers of any plain type, on either device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <halfscope/core/error.hpp>
#include <halfscope/device/device.hpp>

namespace halfscope {

namespace detail {
/// Memory for `bytes` bytes, aligned to 64 at least, from the pool of buffers that were released before:
/// fresh pages cost more than the arithmetic done on them, and a training step's sizes recur exactly.
[[nodiscard]] void* take_memory(std::size_t bytes, Device device);
void give_back_memory(void* memory, std::size_t bytes, Device device) noexcept;
/// Copies between the devices, in the order of the kernels queued on them.
void copy_memory(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes);
void zero_memory(void* memory, std::size_t bytes, Device device);
}  // namespace detail

/// The most bytes that this thread's arrays on the device have held together since the last reset. An array
/// that another thread frees is still counted.
[[nodiscard]] std::int64_t peak_device_bytes();
/// From here on: what they hold now is the least.
void reset_peak_device_bytes();

/// `size` elements, uninitialised where nothing is said. Moves, never copies.
template <typename T>
class Memory {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Memory() = default;
  explicit Memory(std::size_t size, Device device = active_device())
      : data_(size == 0 ? nullptr : static_cast<T*>(detail::take_memory(size * sizeof(T), device))),
        size_(size),
        device_(device) {}
  /// A copy of host memory.
  [[nodiscard]] static Memory from(std::span<const T> values, Device device = active_device()) {
    Memory memory(values.size(), device);
    detail::copy_memory(memory.data_, device, values.data(), Device::cpu, values.size_bytes());
    return memory;
  }
  [[nodiscard]] static Memory zeros(std::size_t size, Device device = active_device()) {
    Memory memory(size, device);
    detail::zero_memory(memory.data_, size * sizeof(T), device);
    return memory;
  }

  Memory(Memory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        device_(other.device_) {}
  Memory& operator=(Memory&& other) noexcept {
    Memory taken(std::move(other));  // so that `other` is empty afterwards
    std::swap(data_, taken.data_);
    std::swap(size_, taken.size_);
    std::swap(device_, taken.device_);
    return *this;
  }
  ~Memory() {
    if (data_ != nullptr) detail::give_back_memory(data_, size_ * sizeof(T), device_);
  }

  [[nodiscard]] Device device() const { return device_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] T* data() { return data_; }
  [[nodiscard]] const T* data() const { return data_; }
  [[nodiscard]] std::span<T> values() { return {data_, size_}; }
  [[nodiscard]] std::span<const T> values() const { return {data_, size_}; }

  /// The elements in host memory.
  [[nodiscard]] std::vector<T> to_host() const {
    std::vector<T> copy(size_);
    detail::copy_memory(copy.data(), Device::cpu, data_, device_, size_ * sizeof(T));
    return copy;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
  Device device_ = Device::cpu;
};

/// Copies one array of the active device to another. Throws InvalidArgument where their sizes differ.
template <typename T>
void copy_values(std::span<const T> from, std::span<T> to) {
  if (from.size() != to.size()) {
    throw InvalidArgument("copy_values: arrays of " + std::to_string(from.size()) + " and " +
                          std::to_string(to.size()) + " elements; give as many of both");
  }
  detail::copy_memory(to.data(), active_device(), from.data(), active_device(), from.size_bytes());
}

/// The elements of an array of the active device in host memory.
template <typename T>
[[nodiscard]] std::vector<T> to_host(std::span<const T> values) {
  std::vector<T> copy(values.size());
  detail::copy_memory(copy.data(), Device::cpu, values.data(), active_device(), values.size_bytes());
  return copy;
}

}  // namespace halfscope
