// Copies to the device whose thread ends before they are made.
#include <thread>

#include <halfscope/device/array.hpp>

#include "tests/support/device_parity.hpp"

namespace halfscope {
namespace {

TEST_CASE("what a thread copies to the device is there when the thread has ended", "[staging][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  Array there;
  std::thread([&] {
    const DeviceScope scope(Device::cuda);
    there = Array::from({3}, {1, 2, 3});
  }).join();
  const Array here = there.to(Device::cpu);
  CHECK(std::vector<float>(here.values().begin(), here.values().end()) == std::vector<float>{1, 2, 3});
}

}  // namespace
}  // namespace halfscope
