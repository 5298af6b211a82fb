// Copies to the device whose thread ends, or takes another stream, before they are made.
#include <optional>
#include <thread>

#include <halfscope/device/array.hpp>

#include "tests/support/device_parity.hpp"

namespace halfscope::staging_device_test {
namespace {

constexpr std::uintptr_t legacy_stream = 1;

std::vector<float> host_values(const Array& array) {
  const Array host = array.to(Device::cpu);
  return {host.values().begin(), host.values().end()};
}

/// Fills pinned memory of two halves, 16 MiB each, with zeros.
void copy_much() {
  const Array zeros = [] {
    const DeviceScope scope(Device::cpu);
    return Array::zeros({std::int64_t{4} << 20});
  }();
  for (int half = 0; half < 2; ++half) (void)zeros.to(Device::cuda);
}

TEST_CASE("what a thread copies to the device is there when the thread has ended", "[staging][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  Array there;
  std::thread([&] {
    const DeviceScope scope(Device::cuda);
    there = Array::from({3}, {1, 2, 3});
  }).join();
  CHECK(host_values(there) == std::vector<float>{1, 2, 3});
}

TEST_CASE("what a thread copies to the device outlasts a change of the stream", "[staging][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  const DeviceScope scope(Device::cuda);
  const bool under_scope = GENERATE(true, false);
  std::optional<StreamScope> callers;
  const auto take = [&](bool of_caller) {
    callers.reset();
    if (of_caller) callers.emplace(0, legacy_stream);
  };
  take(under_scope);
  const Array there = Array::from({3}, {1, 2, 3});
  take(!under_scope);
  copy_much();
  take(under_scope);
  CHECK(host_values(there) == std::vector<float>{1, 2, 3});
}

}  // namespace
}  // namespace halfscope::staging_device_test
