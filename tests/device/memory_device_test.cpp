// Memory of the device, counted for each thread.
#include <halfscope/device/memory.hpp>

#include <thread>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/device_parity.hpp"

namespace halfscope::memory_device_test {
namespace {

TEST_CASE("the peak of device memory is that of the thread's own arrays", "[memory][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  const Memory<float> own(10, Device::cuda);
  reset_peak_device_bytes();
  const std::int64_t before = peak_device_bytes();
  std::int64_t others = 0;
  std::jthread([&] {
    { const Memory<float> first(1000, Device::cuda); }
    const Memory<float> second(10, Device::cuda);
    others = peak_device_bytes();
  }).join();
  CHECK(others == 4000);
  CHECK(before >= 40);
  CHECK(peak_device_bytes() == before);
}

TEST_CASE("memory may outlive the thread's stream", "[memory][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  std::jthread([] {
    thread_local Memory<float> kept;  // made before the thread's stream, and so destroyed after it
    kept = Memory<float>(1000, Device::cuda);
    (void)Memory<float>::from(std::vector<float>(1000, 1.0f), Device::cuda);
  }).join();
  CHECK(Memory<float>::from(std::vector<float>{1.0f}, Device::cuda).to_host() == std::vector<float>{1.0f});
}

}  // namespace
}  // namespace halfscope::memory_device_test
