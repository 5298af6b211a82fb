// cvt.rs against golden lines, which have the rule as it was read off a B200.
#include <halfscope/format/cvt_rs.hpp>

#include <limits>
#include <map>

#include "tests/support/catch.hpp"
#include "tests/support/golden_lines.hpp"

namespace halfscope::cvt_rs_test {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("golden conversions by cvt.rs have their random bits and codes", "[cvt_rs][vectors]") {
  static const std::map<std::string, FloatFormat> formats{
      {"e4m3", fp8_e4m3}, {"e5m2", fp8_e5m2}, {"e3m2", fp6_e3m2}, {"e2m3", fp6_e2m3}, {"e2m1", fp4_e2m1}};
  int shared = 0, converted = 0;
  for_each_line(vectors_folder() / "cvt_rs.txt", [&](const Words& words) {
    INFO(words[0] << " " << words[1] << " " << words[2]);
    if (words[0] == "rbits") {
      const auto bits = cvt_rs_bits(hex_number(words[2]), words[1] == "e2m1x4" ? fp4_e2m1 : fp8_e4m3);
      for (std::size_t i = 0; i < bits.size(); ++i) CHECK(bits[i] == hex_number(words[3 + i]));
      ++shared;
      return;
    }
    // The second number of an 8-bit pair has the upper half of the random bits as they are, one of FP4 the
    // upper bytes.
    const FloatFormat& format = formats.at(words[0]);
    const std::uint32_t bits = hex_number(words[2]);
    const std::uint32_t rbits =
        format == fp4_e2m1 ? (bits & 0xFF00u) << 16 | (bits & 0xFFu) << 8 : bits << 16;
    CHECK(cvt_rs({0, from_bits(hex_number(words[1])), 0, 0}, format, rbits)[1] == hex_number(words[3]));
    ++converted;
  });
  CHECK((has_full_set() ? shared == 8 && converted == 200 : shared == 8 && converted > 10));
}

TEST_CASE("the numbers of a pair round by the same bits, one in reverse", "[cvt_rs][known]") {
  // 1 + 2^-4 lies half way between two numbers of E4M3: the first bit decides.
  const std::array<float, 4> half{1.0625f, 1.0625f, 1.0625f, 1.0625f};
  CHECK(cvt_rs(half, fp8_e4m3, 0x80000001u) == std::array{0x38u, 0x39u, 0x39u, 0x38u});
  CHECK(cvt_rs(half, fp8_e4m3, 0x00018000u) == std::array{0x39u, 0x38u, 0x38u, 0x39u});
  CHECK(cvt_rs({nan, -nan, nan, 1e9f}, fp8_e5m2, 0) == std::array{0x7Fu, 0x7Fu, 0x7Fu, 0x7Bu});
  CHECK(cvt_rs({nan, -nan, 7, -7}, fp4_e2m1, 0xFFFFFFFFu) == std::array{0x7u, 0x7u, 0x7u, 0xFu});
}

}  // namespace
}  // namespace halfscope::cvt_rs_test
