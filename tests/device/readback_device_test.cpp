// Slots that are read together.
#include <halfscope/device/readback.hpp>

#include <halfscope/device/detail/device_memory.hpp>

#include "tests/support/device_parity.hpp"

namespace halfscope::readback_device_test {
namespace {

/// Puts `values` into a slot.
template <typename T>
ReadbackSlot<T> put(Readback& readback, const std::vector<T>& values) {
  const auto slot = readback.take<T>(values.size());
  copy_values(std::span<const T>(Memory<T>::from(values).values()), readback.device_values(slot));
  return slot;
}

template <typename T>
std::vector<T> held(const Readback& readback, const ReadbackSlot<T>& slot) {
  const auto values = readback.values(slot);
  return {values.begin(), values.end()};
}

TEST_CASE("slots of any type are read in one copy", "[readback][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  const DeviceScope scope(Device::cuda);
  Readback readback;
  const std::vector<double> large(30000, 0.25);  // several blocks at first
  for (int step = 0; step < 3; ++step) {
    const auto byte = put<std::uint8_t>(readback, {7});
    const auto none = readback.take<double>(0);
    const auto first = put(readback, large), second = put(readback, large);
    const auto untouched = readback.take<std::int64_t>(3);
    const std::int64_t before = device_memory::host_waits();
    readback.read();
    const std::int64_t waits = device_memory::host_waits() - before;
    if (step > 0) CHECK(waits == 1);
    CHECK(held(readback, byte) == std::vector<std::uint8_t>{7});
    CHECK(held(readback, none).empty());
    CHECK(held(readback, first) == large);
    CHECK(held(readback, second) == large);
    CHECK(held(readback, untouched) == std::vector<std::int64_t>(3));  // zeros again at every step
  }
  const std::int64_t before = device_memory::host_waits();
  readback.read();
  (void)put(readback, large);
  readback.forget();
  readback.read();
  CHECK(device_memory::host_waits() == before);  // nothing was taken, or it was forgotten
  const auto fresh = readback.take<double>(large.size());
  readback.read();
  CHECK(held(readback, fresh) == std::vector<double>(large.size()));
}

}  // namespace
}  // namespace halfscope::readback_device_test
