// Device memory for tests of kernels that take raw pointers.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <halfscope/kernel/gemm/gemm_ordered.hpp>

namespace halfscope {

/// A copy of host data on the device; freed with the object. Throws RuntimeFailure where CUDA fails.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::span<const std::byte> bytes);
  template <typename T>
  explicit DeviceMemory(const std::vector<T>& values)
      : DeviceMemory(std::as_bytes(std::span<const T>(values.data(), values.size()))) {}

  [[nodiscard]] void* data() const { return memory_.get(); }
  /// Waits for the device, then copies back.
  template <typename T>
  [[nodiscard]] std::vector<T> read() const {
    std::vector<T> values(size_ / sizeof(T));
    read(std::as_writable_bytes(std::span<T>(values.data(), values.size())));
    return values;
  }

 private:
  void read(std::span<std::byte> to) const;

  std::size_t size_;
  std::shared_ptr<void> memory_;
};

/// Capability of the current device.
[[nodiscard]] ComputeCapability device_capability();

}  // namespace halfscope
