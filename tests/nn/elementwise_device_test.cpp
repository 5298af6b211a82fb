// Device parity of element-wise kernels: the bits of the kernel on the CPU.
#include <halfscope/device/array.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/cast/round.hpp>

#include "lib/nn/elementwise.hpp"
#include "tests/support/device_parity.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::elementwise_device_test {
namespace {

TEST_CASE("device parity of element-wise loops", "[kernel][elementwise][cuda]") {
  for (const std::size_t size : parity_sizes) {
    check_device_parity({mixed_floats(size), mixed_floats(size)}, [](const Spans& s) { relu(s[0], s[1]); });
    check_device_parity({mixed_floats(size), random_floats(size)},
                        [](const Spans& s) { relu_gradient(s[0], s[1]); });
    check_device_parity({mixed_floats(size), random_floats(size)},
                        [](const Spans& s) { scale_unless_positive(s[0], 0.2f, s[1]); });
    check_device_parity({mixed_floats(size), random_floats(size)}, [](const Spans& s) { add(s[0], s[1]); });
    check_device_parity({mixed_floats(size), mixed_floats(size)},
                        [](const Spans& s) { scale(s[0], 0.3f, s[1]); });
    check_device_parity({mixed_floats(7), mixed_floats(7 * size)},
                        [](const Spans& s) { add_to_rows(s[0], s[1]); });
    check_device_parity({mixed_floats(3 * size), mixed_floats(3 * size)},
                        [&](const Spans& s) { transpose(s[0], 3, static_cast<std::int64_t>(size), s[1]); });
  }
  check_device_parity({mixed_floats(2 * 5 * 7 * 3), mixed_floats(2 * 9 * 11 * 3)}, [](const Spans& s) {
    pad_images(s[0], {2, 5, 7, 3}, {2, 2}, s[1]);
  });
  check_device_parity({mixed_floats(2 * 5 * 7 * 3), mixed_floats(2 * 5 * 13 * 3)}, [](const Spans& s) {
    pad_images(s[0], {2, 5, 7, 3}, {0, 3}, s[1]);
  });
}

TEST_CASE("the largest magnitude on the device", "[kernel][elementwise][cuda]") {
  for (const std::size_t size : parity_sizes) {
    for (const auto& values : {mixed_floats(size), std::vector<float>(size, -0.25f)}) {
      std::vector<float> result(1);
      check_device_parity({values, result}, [](const Spans& s) {
        const Array found = Array::from({1}, {largest_magnitude(s[0])});
        scale(found.values(), 1.0f, s[1]);
      });
    }
  }
}

TEST_CASE("device parity of rounding", "[kernel][round][cuda]") {
  const RandomStream stream{.seed = 0x123456789ABCDEF, .step = 17, .site = 4};
  for (const FloatFormat& format : formats_under_test()) {
    std::vector<float> values = boundary_floats(format);
    const std::vector<float> random = random_floats(5003);
    values.insert(values.end(), random.begin(), random.end());
    for (const Quantizer& q : quantizers_of(format)) {
      INFO(to_string(q));
      check_device_parity({values, values}, [&](const Spans& s) { round(s[0], s[1], q, stream); });
    }
  }
}

TEST_CASE("arrays go to the device and come back", "[array][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  const Array here = Array::from({2, 3}, {1, 2, 3, 4, 5, 6});
  const Array there = here.to(Device::cuda);
  CHECK(there.device() == Device::cuda);
  CHECK(there.shape() == here.shape());
  CHECK(there.clone().to(Device::cpu)[4] == 5);
  const DeviceScope scope(Device::cuda);
  CHECK(Array({3}).device() == Device::cuda);
  CHECK(Array::zeros({3}).to(Device::cpu)[2] == 0);
  CHECK(Array::from({}, {42.0f}).item() == 42);
  CHECK_THROWS_AS(there.item(), InvalidArgument);
  CHECK(Memory<std::int32_t>::from(std::vector<std::int32_t>{7, 8}).to_host() ==
        std::vector<std::int32_t>{7, 8});
  const DeviceScope back(Device::cpu);
  CHECK(Array({3}).device() == Device::cpu);
}

TEST_CASE("a build without CUDA refuses the device, and the simulated one refuses the host's memory",
          "[kernel][cuda]") {
  if (describe_cuda_device()) return;
  if (can_use_device()) {
    check_says(message_of<InvalidArgument>([] { const DeviceScope scope(Device::cuda); }),
               {"built without CUDA"});
    const SimulatedDevice simulated;
    const DeviceScope scope(Device::cuda);
    std::vector<float> host(4);
    check_says(message_of<RuntimeFailure>([&] { scale(host, 2, host); }), {"memory of the host"});
  } else {
    check_says(message_of<RuntimeFailure>([] { const DeviceScope scope(Device::cuda); }), {"device cuda"});
  }
}

}  // namespace
}  // namespace halfscope::elementwise_device_test
