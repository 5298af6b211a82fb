// The CUDA device: found once, its memory from the stream-ordered pool.
#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <optional>
#include <utility>

#include <halfscope/device/detail/device_cuda.cuh>
#include <halfscope/device/detail/device_memory.hpp>
#include <halfscope/device/detail/staging.cuh>
#include <halfscope/device/device.hpp>
#include <halfscope/device/step_graph.hpp>

namespace halfscope {
namespace {

constexpr int least_compute_capability = 75;

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// Reason, in words, why the machine's device cannot be used; empty if it can.
std::string obstacle() {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaErrorInsufficientDriver) {
    int driver = 0;
    (void)cudaDriverGetVersion(&driver);
    if (driver == 0) return "this machine has no NVIDIA driver; use --device cpu";
    return fmt::format("the driver supports CUDA {}, this build needs {}; update the driver",
                       version_text(driver), version_text(CUDART_VERSION));
  }
  if (status != cudaSuccess || devices == 0)
    return fmt::format("no CUDA device ({}); use --device cpu", cudaGetErrorString(status));
  const int capability = cuda::compute_capability();
  if (capability < least_compute_capability) {
    return fmt::format("the CUDA device has compute capability {}.{}; at least 7.5 is needed",
                       capability / 10, capability % 10);
  }
  return {};
}

cudaMemPool_t memory_pool() {
  int device = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  cudaMemPool_t pool = nullptr;
  cuda::check(cudaDeviceGetDefaultMemPool(&pool, device), "memory pool");
  return pool;
}

/// Freed memory stays in the pool: the next step asks for the same sizes.
void keep_freed_memory() {
  std::uint64_t all = UINT64_MAX;
  cuda::check(cudaMemPoolSetAttribute(memory_pool(), cudaMemPoolAttrReleaseThreshold, &all), "memory pool");
}

/// Once per process.
const std::string& device_obstacle() {
  static const std::string found = [] {
    std::string text = obstacle();
    if (text.empty()) keep_freed_memory();
    return text;
  }();
  return found;
}

/// Where a StreamScope sends what this thread queues; nothing where there is none: 0 is a stream too.
thread_local constinit std::optional<std::uintptr_t> callers_stream;

std::atomic<std::int64_t> waits = 0;

/// The stream that this thread queues on; null, CUDA's own, before there is one and after it is gone.
thread_local constinit cudaStream_t own_stream = nullptr;

/// Makes it, and destroys it when the thread ends. A thread_local object that was made before it may release
/// its memory later still: nothing is queued then that could use it.
class OwnStream {
 public:
  OwnStream() {
    cuda::check(cudaStreamCreateWithFlags(&own_stream, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  ~OwnStream() {
    const cudaStream_t stream = std::exchange(own_stream, nullptr);
    (void)cudaStreamSynchronize(stream);
    (void)cudaStreamDestroy(stream);
  }
};

}  // namespace

std::optional<DeviceDescription> describe_cuda_device() {
  if (!device_obstacle().empty()) return std::nullopt;
  int device = 0, driver = 0;
  cudaDeviceProp properties{};
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  cuda::check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  cuda::check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  return DeviceDescription{properties.name, version_text(driver), version_text(CUDART_VERSION),
                           10 * properties.major + properties.minor};
}

void synchronize_device() {
  cut_recording();
  ++waits;
  cuda::check(cudaStreamSynchronize(cuda::stream()), "synchronize");
}

// A real device needs no simulation.
SimulatedDevice::SimulatedDevice() = default;
SimulatedDevice::~SimulatedDevice() = default;

StreamScope::StreamScope(int gpu, std::uintptr_t stream) : previous_(callers_stream) {
  device_memory::require_device();
  cuda::check(cudaGetDevice(&previous_gpu_), "cudaGetDevice");
  cut_recording();  // a recording is of one stream
  cuda::leave_stream();
  cuda::check(cudaSetDevice(gpu), "cudaSetDevice");
  callers_stream = stream;
}

StreamScope::~StreamScope() {
  try {
    cuda::leave_stream();
  } catch (const std::exception&) {
    (void)cudaStreamSynchronize(cuda::stream());  // in place of the event
  }
  callers_stream = previous_;
  (void)cudaSetDevice(previous_gpu_);
}

namespace cuda {

void check(cudaError_t status, const char* what, std::source_location where) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // or the next launch would report it again
  throw RuntimeFailure(
      fmt::format("{}: {} ({}:{})", what, cudaGetErrorString(status), where.file_name(), where.line()));
}

cudaStream_t stream() {
  if (callers_stream)
    return reinterpret_cast<cudaStream_t>(*callers_stream);  // NOLINT(performance-no-int-to-ptr)
  thread_local const OwnStream made;
  return own_stream;
}

int compute_capability() {
  int device = 0, major = 0, minor = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "compute capability");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "compute capability");
  return 10 * major + minor;
}

}  // namespace cuda

namespace device_memory {

void require_device() {
  if (!device_obstacle().empty()) throw RuntimeFailure("device cuda: " + device_obstacle());
}

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMallocAsync(&memory, bytes, cuda::stream());
  if (status == cudaErrorMemoryAllocation) {
    std::size_t free = 0, total = 0;
    (void)cudaGetLastError();
    (void)cudaMemGetInfo(&free, &total);
    throw RuntimeFailure(
        fmt::format("device cuda: out of memory: {} MiB wanted, {} of {} MiB free; use a smaller batch",
                    bytes >> 20, free >> 20, total >> 20));
  }
  cuda::check(status, "cudaMallocAsync");
  return memory;
}

void release(void* memory, std::size_t) noexcept {
  try {
    (void)cudaFreeAsync(memory, cuda::stream());
  } catch (
      const RuntimeFailure&) {  // NOLINT(bugprone-empty-catch): the device is gone, and its memory with it
  }
}

void copy(void* to, const void* from, std::size_t bytes, Direction direction) {
  if (direction == Direction::to_device && bytes <= cuda::Staging::half)
    return cuda::staging().copy(to, from, bytes);
  if (direction != Direction::within_device) cut_recording();
  cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cuda::stream()), "copy");
  if (direction != Direction::within_device) synchronize_device();
}

std::int64_t host_waits() {
  return waits;
}

void fill_zero(void* memory, std::size_t bytes) {
  cuda::check(cudaMemsetAsync(memory, 0, bytes, cuda::stream()), "cudaMemset");
}

}  // namespace device_memory
}  // namespace halfscope
