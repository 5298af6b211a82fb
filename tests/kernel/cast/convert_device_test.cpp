// DType conversions: every 16-bit code, floats around every boundary, and the device.
#include <halfscope/kernel/cast/convert.hpp>

#include <cmath>

#include <halfscope/format/elements.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/formats.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/cast/round.hpp>

#include "tests/support/device_parity.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::convert_device_test {
namespace {

struct Conversion {
  DType storage;
  FloatFormat format;
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(float);
};

const Conversion conversions[] = {
    {DType::f16, fp16, [](std::uint16_t code) { return float_of_half(code); },
     [](float x) { return half_of_float(x); }},
    {DType::bf16, bf16, [](std::uint16_t code) { return float_of_bfloat(code); },
     [](float x) { return bfloat_of_float(x); }},
};

TEST_CASE("every code becomes its number and comes back", "[convert]") {
  for (const Conversion& c : conversions) {
    for (std::uint32_t code = 0; code <= 0xFFFF; ++code) {
      const float x = c.widen(static_cast<std::uint16_t>(code)), expected = decode(code, c.format);
      if (std::isnan(expected)) {
        REQUIRE(std::isnan(x));
        REQUIRE(std::isnan(c.widen(c.narrow(x))));
      } else {
        REQUIRE(to_bits(x) == to_bits(expected));
        REQUIRE(c.narrow(x) == code);
      }
    }
  }
}

TEST_CASE("floats between two numbers become the nearest, ties the even one", "[convert]") {
  for (const Conversion& c : conversions) {
    const std::uint32_t infinity = encode(HUGE_VALF, c.format);
    for (std::uint32_t code = 0; code < infinity; ++code) {
      const float low = decode(code, c.format);
      const double high = code + 1 == infinity ? std::ldexp(1.0, c.format.max_exponent() + 1)
                                               : static_cast<double>(decode(code + 1, c.format));
      const auto tie = static_cast<float>((static_cast<double>(low) + high) / 2);
      for (const float magnitude : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, HUGE_VALF)}) {
        for (const float x : {magnitude, -magnitude}) {
          REQUIRE(c.narrow(x) == encode(round(x, {.format = c.format}), c.format));
        }
      }
    }
    CHECK(c.narrow(HUGE_VALF) == infinity);
  }
}

/// The codes that the device stores of `values`.
std::vector<std::uint16_t> codes_on_device(const std::vector<float>& values, DType storage) {
  const SimulatedDevice simulated;
  const DeviceScope scope(Device::cuda);
  const auto from = Memory<float>::from(values);
  Memory<std::uint16_t> to(values.size());
  cuda::convert({from.data(), values.size(), DType::f32}, {to.data(), values.size(), storage});
  return to.to_host();
}

TEST_CASE("every NaN becomes one code, whatever its sign", "[convert][cuda]") {
  std::vector<float> values;
  for (const std::uint32_t bits : {0x7F800001u, 0x7FC00000u, 0xFF800001u, 0xFFC00000u, 0xFFFFFFFFu})
    values.push_back(from_bits(bits));
  for (const Conversion& c : conversions) {
    for (const float x : values) CHECK(c.narrow(x) == 0x7FFF);
  }
  if (!can_use_device()) return;
  for (const Conversion& c : conversions) {
    const auto codes = codes_on_device(values, c.storage);
    CHECK(codes == std::vector<std::uint16_t>(values.size(), 0x7FFF));
  }
}

TEST_CASE("arrays keep what their storage holds", "[convert][cuda]") {
  if (!can_use_device()) return;
  const SimulatedDevice simulated;
  const DeviceScope scope(Device::cuda);
  for (const std::size_t size : parity_sizes) {
    const std::vector<float> floats = mixed_floats(size);
    Array array({static_cast<std::int64_t>(size)});
    detail::copy_memory(array.data(), Device::cuda, floats.data(), Device::cpu, size * sizeof(float));
    for (const Conversion& c : conversions) {
      const Array narrow = stored_copy(array, c.storage);
      CHECK(narrow.dtype() == c.storage);
      const Array back = to_host_floats(narrow);
      for (const Quantizer& q : quantizers_of(c.format)) {
        const RandomStream stream{.seed = 5};
        Array rounded(array.shape(), c.storage);
        round_into(array.values(), rounded.view(), q, stream);
        const Array found = to_host_floats(rounded);
        for (std::size_t i = 0; i < size; ++i) {
          const float expected = round(floats[i], q, rounding_bits(stream, i));
          REQUIRE(same_but_nan_bits(found[i], expected));
        }
      }
      for (std::size_t i = 0; i < size; ++i) {
        const float expected = round(floats[i], {.format = c.format});
        REQUIRE(same_but_nan_bits(back[i], expected));
      }
    }
  }
}

TEST_CASE("16-bit memory is not taken for floats", "[convert]") {
  Array halves({3}, DType::f16);
  CHECK(halves.size() == 3);
  CHECK(halves.clone().dtype() == DType::f16);
  check_says(message_of<InvalidArgument>([&] { (void)halves.values(); }), {"16 bits"});
  check_says(message_of<InvalidArgument>([&] { (void)stored_copy(halves, DType::f32); }), {"16 bits"});
}

}  // namespace
}  // namespace halfscope::convert_device_test
