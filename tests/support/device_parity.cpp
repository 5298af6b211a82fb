// Copies to and fro, and the comparison.
#include "tests/support/device_parity.hpp"

#include <algorithm>

#include <halfscope/device/array.hpp>
#include <halfscope/format/bits.hpp>

#include "tests/support/formats.hpp"

namespace halfscope {
namespace {

constexpr std::size_t guard = 16;

/// Another NaN around each array: a kernel that takes one element too many would copy, add or count it.
float sentinel_of(std::size_t array) {
  return from_bits(0x7FC5A500u + static_cast<std::uint32_t>(array));
}

Array guarded(const std::vector<float>& values, float sentinel) {
  Array array({static_cast<std::int64_t>(values.size() + 2 * guard)}, Device::cpu);
  std::fill(array.values().begin(), array.values().end(), sentinel);
  std::copy(values.begin(), values.end(), array.values().begin() + guard);
  return array;
}

}  // namespace

bool can_use_device() {
  const SimulatedDevice simulated;
  try {
    const DeviceScope scope(Device::cuda);
    return true;
  } catch (const RuntimeFailure&) {
    WARN("skipped: this machine has no CUDA device");  // ctest reports the test as skipped
    return false;
  }
}

std::vector<float> mixed_floats(std::size_t size) {
  std::vector<float> values = boundary_floats(fp16);
  values.resize(std::min(values.size(), size / 2));
  const std::vector<float> random = random_floats(size - values.size());
  values.insert(values.end(), random.begin(), random.end());
  return values;
}

std::vector<std::vector<float>> run_on(Device device, const std::vector<std::vector<float>>& arrays,
                                       const std::function<void(const Spans&)>& operation) {
  const SimulatedDevice simulated;
  std::vector<Array> there;
  Spans spans;
  for (const std::vector<float>& values : arrays) {
    there.push_back(guarded(values, sentinel_of(there.size())).to(device));
    spans.push_back(there.back().values().subspan(guard, values.size()));
  }
  {
    const DeviceScope scope(device);
    operation(spans);
  }
  std::vector<std::vector<float>> results;
  for (std::size_t i = 0; i < there.size(); ++i) {
    const Array here = there[i].to(Device::cpu);
    const auto all = here.values();
    const auto is_sentinel = [&](float value) { return to_bits(value) == to_bits(sentinel_of(i)); };
    CHECK(std::all_of(all.begin(), all.begin() + guard, is_sentinel));
    CHECK(std::all_of(all.end() - guard, all.end(), is_sentinel));
    results.emplace_back(all.begin() + guard, all.end() - guard);
  }
  return results;
}

void check_device_parity(const std::vector<std::vector<float>>& arrays,
                         const std::function<void(const Spans&)>& operation) {
  if (!can_use_device()) return;
  const auto expected = run_on(Device::cpu, arrays, operation);
  const auto found = run_on(Device::cuda, arrays, operation);
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    std::size_t i = 0;
    while (i < expected[a].size() && same_but_nan_bits(expected[a][i], found[a][i])) ++i;
    INFO("array " << a << ", element " << i << " of " << expected[a].size());
    CHECK(i == expected[a].size());
  }
}

}  // namespace halfscope
