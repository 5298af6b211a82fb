// Where arrays live and kernels run: each thread has an active device, which a scope changes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <halfscope/core/names.hpp>

namespace halfscope {

enum class Device : std::uint8_t { cpu, cuda };
template <>
inline constexpr std::array<std::string_view, 2> enum_names<Device>{"cpu", "cuda"};

namespace detail {
inline thread_local constinit Device active_device = Device::cpu;
}

/// The device of this thread: new arrays are made there, and kernels take their arrays to be there.
[[nodiscard]] inline Device active_device() {
  return detail::active_device;
}

/// Makes `device` this thread's active one for the life of the object. Throws InvalidArgument where the build
/// has no CUDA, RuntimeFailure where the machine has no CUDA device that it can use; both say what is
/// missing.
class DeviceScope {
 public:
  explicit DeviceScope(Device device);
  ~DeviceScope() { detail::active_device = previous_; }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Device previous_;
};

/// For the life of the object, what this thread queues goes to a stream of its caller's: `stream` is a
/// cudaStream_t as a number, of the GPU `gpu`. On the simulated device, and without CUDA, it changes nothing.
class StreamScope {
 public:
  StreamScope(int gpu, std::uintptr_t stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  [[maybe_unused]] int previous_gpu_ = 0;
  std::optional<std::uintptr_t> previous_{};
};

/// The device that Device::cuda stands for.
struct DeviceDescription {
  std::string name;            ///< "NVIDIA H200"
  std::string driver;          ///< the CUDA version that the driver supports, "13.0"
  std::string runtime;         ///< the CUDA version that the build was made with
  int compute_capability = 0;  ///< 90 for 9.0
};
/// Empty where the build has no CUDA or the machine no usable device.
[[nodiscard]] std::optional<DeviceDescription> describe_cuda_device();

/// Returns when everything queued on the device is done; throws RuntimeFailure where some of it failed.
void synchronize_device();

/// For tests, in a build without CUDA: for the life of the object Device::cuda is simulated. Its kernels are
/// the same sources, run index by index on the host; its memory is inaccessible to everything else, so that
/// code which takes device memory for its own stops at once. In a build with CUDA it changes nothing.
class SimulatedDevice {
 public:
  SimulatedDevice();
  ~SimulatedDevice();
  SimulatedDevice(const SimulatedDevice&) = delete;
  SimulatedDevice& operator=(const SimulatedDevice&) = delete;
};

}  // namespace halfscope
