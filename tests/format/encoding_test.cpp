// Codes and numbers: there and back for every code, and the NaNs.
#include <halfscope/format/encoding.hpp>

#include "tests/reference/rounding.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"

namespace halfscope::encoding_test {
namespace {

static_assert(encode(1, fp16) == 0x3C00 && decode(0xFBFF, fp16) == -65504);
static_assert(encode(0x1p-24f, fp16) == 1 && encode(-0x1p-149f, fp32) == 0x80000001);

TEST_CASE("every code stands for the number of its definition, and is that number's code", "[encoding]") {
  std::vector<FloatFormat> formats = formats_under_test();
  std::ranges::copy(unsigned_formats_under_test(), std::back_inserter(formats));
  for (const FloatFormat& format : formats) {
    const std::uint64_t codes = std::uint64_t{1} << code_width(format);
    const std::uint64_t step = codes > 1u << 16 ? codes / 49'999 : 1;
    for (std::uint64_t i = 0; i < codes; i += step) {
      const auto code = static_cast<std::uint32_t>(i);
      const float value = decode(code, format);
      double expected = reference::decode(code, format);
      const double min_normal = reference::limits(format).min_normal;
      const bool flushed = format.subnormals == Subnormals::flush_to_zero && std::abs(expected) < min_normal;
      if (flushed) expected = std::copysign(0.0, expected);
      INFO(to_string(format) << " code " << code << " is " << describe(value));
      REQUIRE(same_but_nan_bits(value, static_cast<float>(expected)));
      if (!flushed && !std::isnan(value)) REQUIRE(encode(value, format) == code);
    }
  }
}

TEST_CASE("NaN is encoded as the positive quiet one, and signalling codes decode to signalling NaNs",
          "[encoding]") {
  const float nan = from_bits(0xFFC12345);
  CHECK(encode(nan, fp32) == 0x7FC00000);
  CHECK(encode(nan, fp16) == 0x7E00);
  CHECK(encode(nan, bf16) == 0x7FC0);
  CHECK(encode(nan, fp8_e5m2) == 0x7E);
  CHECK(encode(nan, fp8_e4m3) == 0x7F);
  CHECK(encode(nan, parse_format("e2m1f")) == 0x7);  // no NaN: the largest number
  CHECK(is_signalling(decode(0x7C01, fp16)));
  CHECK(is_signalling(decode(0xFDFF, fp16)));
  CHECK_FALSE(is_signalling(decode(0x7E00, fp16)));
  CHECK_FALSE(is_signalling(decode(0x7C00, fp16)));
  CHECK(is_signalling(decode(0x7D, fp8_e5m2)));
  CHECK_FALSE(is_signalling(decode(0x7E, fp8_e5m2)));
  CHECK_FALSE(is_signalling(decode(0xFF, fp8_e4m3)));
}

}  // namespace
}  // namespace halfscope::encoding_test
