// A device whose memory is one reserved range of addresses, protected while no kernel runs.
#include <halfscope/device/detail/device_simulated.hpp>

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <halfscope/device/detail/device_memory.hpp>
#include <halfscope/device/device.hpp>
#include <halfscope/device/step_graph.hpp>

namespace halfscope {
namespace {

constexpr std::size_t capacity = std::size_t{16} << 30;  // addresses; pages are taken as they are touched
/// A huge page, where the system has them: access changes with every launch, and takes as long as there are
/// pages.
constexpr std::size_t page = std::size_t{2} << 20;
constexpr std::size_t alignment = 256;

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

class Arena {
 public:
  Arena() {
    void* const mapped =
        mmap(nullptr, capacity + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw RuntimeFailure("simulated device: no addresses for its memory");
    void* aligned = mapped;
    std::size_t space = capacity + page;
    first_ = static_cast<std::byte*>(std::align(page, capacity, aligned, space));
    (void)madvise(first_, capacity, MADV_HUGEPAGE);  // small pages do as well
  }

  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::size_t size = rounded_up(bytes, alignment);
    auto& free = free_[size];
    if (!free.empty()) {
      void* memory = free.back();
      free.pop_back();
      return memory;
    }
    if (size > capacity - used_) throw RuntimeFailure("simulated device: out of memory");
    void* memory = first_ + used_;
    used_ += size;
    if (open_ > 0) protect(PROT_READ | PROT_WRITE);
    return memory;
  }

  void give_back(void* memory, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    free_[rounded_up(bytes, alignment)].push_back(memory);
  }

  void open() {
    const std::lock_guard lock(mutex_);
    if (open_++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  void close() {
    const std::lock_guard lock(mutex_);
    if (--open_ == 0) protect(PROT_NONE);
  }

  [[nodiscard]] std::size_t used() {
    const std::lock_guard lock(mutex_);
    return used_;
  }

  [[nodiscard]] bool holds(const void* memory) const {
    const auto* byte = static_cast<const std::byte*>(memory);
    return byte >= first_ && byte < first_ + capacity;
  }

 private:
  void protect(int access) {
    if (used_ > 0 && mprotect(first_, rounded_up(used_, page), access) != 0)
      throw RuntimeFailure("simulated device: its memory cannot be protected");
  }

  std::byte* first_ = nullptr;
  std::size_t used_ = 0;
  int open_ = 0;
  std::unordered_map<std::size_t, std::vector<void*>> free_{};
  std::mutex mutex_{};
};

/// Never destroyed: a buffer may outlive every static object.
Arena& arena() {
  static auto* const instance = new Arena;
  return *instance;
}

int simulations = 0;
std::atomic<std::int64_t> waits = 0;  // as there would be on a device
thread_local bool records = false;    // calls that a recording forbids are refused; all else is done at once

void refuse_while_recording(const char* what) {
  if (records) throw RuntimeFailure(std::string("simulated device: ") + what + " while its work is recorded");
}

}  // namespace

SimulatedDevice::SimulatedDevice() {
  ++simulations;
}
SimulatedDevice::~SimulatedDevice() {
  --simulations;
}

StreamScope::StreamScope(int /*gpu*/, std::uintptr_t /*stream*/) {}
StreamScope::~StreamScope() {}  // not defaulted: the header is also of the build with CUDA, which has one

std::optional<DeviceDescription> describe_cuda_device() {
  return std::nullopt;
}
void synchronize_device() {
  cut_recording();
  ++waits;
}

namespace device_memory {

SimulatedLaunch::SimulatedLaunch() {
  arena().open();
}
SimulatedLaunch::~SimulatedLaunch() {
  arena().close();
}

bool is_simulated(const void* memory) {
  return arena().holds(memory);
}

void require_device() {
  if (simulations > 0) return;
  throw InvalidArgument("device cuda: this halfscope was built without CUDA; use --device cpu");
}

void* allocate(std::size_t bytes) {
  require_device();
  refuse_while_recording("memory is wanted");
  return arena().take(bytes);
}

void release(void* memory, std::size_t bytes) noexcept {
  arena().give_back(memory, bytes);
}

void copy(void* to, const void* from, std::size_t bytes, Direction direction) {
  if (direction == Direction::to_host) cut_recording();
  const SimulatedLaunch launch;
  if (is_simulated(to) != (direction != Direction::to_host) ||
      is_simulated(from) != (direction != Direction::to_device)) {
    throw RuntimeFailure(
        "simulated device: a copy takes host memory for the device's, or the other way round");
  }
  std::memcpy(to, from, bytes);
  if (direction == Direction::to_host) ++waits;
}

void begin_recording() {
  refuse_while_recording("another recording begins");
  records = true;
}

bool launch_recording(void*& graph) {
  records = false;
  const bool updated = graph != nullptr;
  graph = &arena();  // something that is there
  return updated;
}

void drop_recording() noexcept {
  records = false;
}

void release_graph(void*) noexcept {}

std::int64_t host_waits() {
  return waits;
}

void fill_zero(void* memory, std::size_t bytes) {
  const SimulatedLaunch launch;
  std::memset(memory, 0, bytes);
}

}  // namespace device_memory
}  // namespace halfscope
