// Arrays on the device, collected from wherever their elements lie: as the CPU widens the same ones.
#include <halfscope/kernel/cast/detail/gather.hpp>

#include <algorithm>
#include <cstring>

#include <halfscope/device/memory.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/cast/convert.hpp>

#include "tests/support/device_parity.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/random_arrays.hpp"

namespace halfscope::gather_device_test {
namespace {

constexpr std::array types{DType::f16, DType::bf16, DType::f32, DType::f64, DType::f8_e4m3, DType::f8_e5m2};

/// Elements of any bits.
std::vector<std::byte> elements_of(DType type, std::size_t count) {
  const std::vector<float> random = mixed_floats((count * bytes_per_element(type) + 3) / 4);
  std::vector<std::byte> bytes(count * bytes_per_element(type));
  if (!bytes.empty()) std::memcpy(bytes.data(), random.data(), bytes.size());
  return bytes;
}

/// The elements of `array`, whose first one is at `first` of `elements`, collected on the device.
std::vector<float> gathered(const std::vector<std::byte>& elements, StridedArray array, std::size_t first,
                            std::size_t count) {
  const SimulatedDevice simulated;
  const DeviceScope scope(Device::cuda);
  const auto memory = Memory<std::byte>::from(elements);
  Memory<float> out(count);
  array.data = memory.data() + first * bytes_per_element(array.type);
  cuda::gather(array, out.values());
  return out.to_host();
}

/// The same bits; of a NaN in f64, which the device has to convert, the payload is the device's.
bool same_elements(DType type, const std::vector<float>& a, const std::vector<float>& b) {
  if (type == DType::f64) return same_but_nan_bits(a, b);
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_bits);
}

TEST_CASE("elements of every type are collected on the device", "[kernel][cuda]") {
  if (!can_use_device()) return;
  for (const DType type : types) {
    for (const std::size_t size : parity_sizes) {
      INFO(name_of(type) << ", " << size);
      const std::vector<std::byte> elements = elements_of(type, size);
      std::vector<float> expected(size);
      widen(type, elements.data(), expected);
      StridedArray array{.type = type, .axes = 1};
      array.extents[0] = static_cast<std::int64_t>(size);
      array.strides[0] = 1;
      CHECK(same_elements(type, gathered(elements, array, 0, size), expected));
    }
  }
}

TEST_CASE("elements apart are collected on the device in row-major order", "[kernel][cuda]") {
  if (!can_use_device()) return;
  constexpr std::size_t count = 4 * 3 * 5, last = 1000;
  for (const DType type : types) {
    const std::vector<std::byte> elements = elements_of(type, last + 1);
    std::vector<float> all(last + 1);
    widen(type, elements.data(), all);
    for (const std::array<std::int64_t, 3> strides :
         {std::array<std::int64_t, 3>{15, 5, 1}, {1, 4, 12}, {100, 0, 7}}) {
      for (const std::int64_t direction : {1, -1}) {
        StridedArray array{.type = type, .axes = 3, .extents = {4, 3, 5}};
        const std::int64_t first = direction < 0 ? last : 0;
        std::vector<float> expected;
        for (std::int64_t i = 0; i < 4; ++i) {
          for (std::int64_t j = 0; j < 3; ++j) {
            for (std::int64_t k = 0; k < 5; ++k) {
              const std::int64_t offset = i * strides[0] + j * strides[1] + k * strides[2];
              expected.push_back(all[static_cast<std::size_t>(first + direction * offset)]);
            }
          }
        }
        for (std::size_t axis = 0; axis < 3; ++axis) array.strides[axis] = direction * strides[axis];
        INFO(name_of(type) << ", " << strides[0] << " " << strides[1] << " " << strides[2]);
        CHECK(
            same_elements(type, gathered(elements, array, static_cast<std::size_t>(first), count), expected));
      }
    }
  }
}

TEST_CASE("an array without axes has one element", "[kernel][cuda]") {
  if (!can_use_device()) return;
  const float value = -2.5F;
  std::vector<std::byte> element(sizeof value);
  std::memcpy(element.data(), &value, sizeof value);
  CHECK(gathered(element, {.type = DType::f32}, 0, 1) == std::vector<float>{value});
}

}  // namespace
}  // namespace halfscope::gather_device_test
