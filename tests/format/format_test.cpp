// Limits of the formats: against the standards' tables and against their own codes.
#include <halfscope/format/catalogue.hpp>
#include <halfscope/format/quantizer.hpp>

#include "tests/reference/rounding.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"

namespace halfscope::format_test {
namespace {

double max_finite(const FloatFormat& format) {
  return from_bits(format.max_finite_bits());
}

TEST_CASE("the catalogue has the limits that the standards print", "[format]") {
  struct Published {
    FloatFormat format;
    double largest;
    int min_exponent, lowest_exponent;
  };
  for (const auto& [format, largest, min_exponent, lowest_exponent] :
       {Published{fp32, 0x1.fffffep127, -126, -149},
        {tf32, 0x1.ffcp127, -126, -136},
        {fp16, 65504, -14, -24},
        {bf16, 0x1.fep127, -126, -133},
        {fp8_e4m3, 448, -6, -9},
        {fp8_e5m2, 57344, -14, -16},
        {fp8_e4m3fnuz, 240, -7, -10},
        {fp8_e5m2fnuz, 57344, -15, -17},
        {fp8_e4m3b11fnuz, 30, -10, -13},
        {e4m3, 240, -6, -9},
        {e3m4, 15.5, -2, -6},
        {fp6_e3m2, 28, -2, -4},
        {fp6_e2m3, 7.5, 0, -3},
        {fp4_e2m1, 6, 0, -1},
        {ue4m3, 448, -6, -9},
        {ue5m3, 114688, -14, -17}}) {
    INFO(to_string(format));
    CHECK(max_finite(format) == largest);
    CHECK(format.min_exponent() == min_exponent);
    CHECK(format.lowest_exponent() == lowest_exponent);
  }
}

TEST_CASE("limits agree with the definition for every format", "[format]") {
  for (const FloatFormat& format : formats_under_test()) {
    INFO(to_string(format));
    const reference::Limits limits = reference::limits(format);
    CHECK(max_finite(format) == limits.max_finite);
    CHECK(std::ldexp(1.0, format.min_exponent()) == limits.min_normal);
    const bool flushed = format.subnormals == Subnormals::flush_to_zero;
    CHECK(format.lowest_exponent() == format.min_exponent() - (flushed ? 0 : format.mantissa_bits));
  }
}

TEST_CASE("limits agree with the codes of narrow formats", "[format]") {
  for (const char* name : {"fp8_e4m3", "fp8_e5m2", "e4m3", "e2m1f", "e2m1fn", "e2m3f", "e3m2f", "e3m2fn",
                           "ue4m3", "fp8_e4m3fnuz", "p3109_k8p4se", "p3109_k3p3ue", "p3109_k4p2ue"}) {
    INFO(name);
    const FloatFormat format = parse_format(name);
    double largest = 0;
    double smallest = 1e9;
    for (unsigned code = 0; code < 1u << (format.exponent_bits + format.mantissa_bits); ++code) {
      const double value = reference::decode(code, format);
      if (std::isfinite(value)) largest = std::max(largest, value);
      if (value > 0) smallest = std::min(smallest, value);
    }
    CHECK(max_finite(format) == largest);
    CHECK(std::ldexp(1.0, format.lowest_exponent()) == smallest);
  }
}

TEST_CASE("a catalogue entry has a name and a summary of its own", "[format]") {
  for (const NamedFormat& a : format_catalogue) {
    CHECK_FALSE(a.summary.empty());
    for (const NamedFormat& b : format_catalogue)
      CHECK((&a == &b || (a.name != b.name && a.format != b.format)));
  }
}

}  // namespace
}  // namespace halfscope::format_test
