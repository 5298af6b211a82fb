// Names of formats and quantizers: what is printed is read back, and what is wrong is named.
#include <halfscope/format/quantizer.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::quantizer_test {
namespace {

TEST_CASE("every quantizer is read back from its name", "[quantizer]") {
  for (const FloatFormat& format : formats_under_test()) {
    for (const Quantizer& q : quantizers_of(format)) {
      INFO(to_string(q));
      CHECK(parse_quantizer(to_string(q)) == q);
    }
  }
}

TEST_CASE("every format by bits is read back from its name", "[quantizer]") {
  for (int exponent_bits = 2; exponent_bits <= 8; ++exponent_bits) {
    for (int mantissa_bits = 1; mantissa_bits <= 23; ++mantissa_bits) {
      for (const Specials specials : {Specials::ieee, Specials::nan_only, Specials::finite_only}) {
        for (const Subnormals subnormals : {Subnormals::gradual, Subnormals::flush_to_zero}) {
          const FloatFormat format{exponent_bits, mantissa_bits, specials, subnormals};
          if (exponent_bits == 8 && specials != Specials::ieee) continue;
          CHECK(parse_format(to_string(format)) == format);
        }
      }
    }
  }
}

TEST_CASE("names are the catalogue's where it has one", "[quantizer]") {
  for (const NamedFormat& entry : format_catalogue) {
    CHECK(to_string(entry.format) == entry.name);
    CHECK(parse_format(entry.name) == entry.format);
  }
  CHECK(to_string(FloatFormat{5, 2, Specials::nan_only}) == "e5m2fn");
  CHECK(to_string(FloatFormat{3, 2, Specials::finite_only}) == "e3m2f");
  CHECK(to_string(FloatFormat{4, 3}) == "e4m3");
  CHECK(to_string(FloatFormat{6, 9, Specials::ieee, Subnormals::flush_to_zero}) == "e6m9_ftz");
  CHECK(to_string(FloatFormat{5, 10, Specials::ieee, Subnormals::flush_to_zero}) == "fp16_ftz");
  CHECK(parse_format("e5m10") == fp16);
  for (const FormatAlias& entry : format_aliases) {
    CHECK(parse_format(entry.alias) == entry.format);
    CHECK(to_string(parse_quantizer(std::string(entry.alias) + "/up")) == to_string(entry.format) + "/up");
  }
  CHECK(parse_format("e4m3fn") == fp8_e4m3);
  CHECK(parse_format("e8m23_ftz") == FloatFormat{8, 23, Specials::ieee, Subnormals::flush_to_zero});
}

TEST_CASE("rounding and overflow come in either order, with defaults left out", "[quantizer]") {
  CHECK(to_string(Quantizer{fp16}) == "fp16");
  CHECK(to_string(Quantizer{fp8_e4m3, Rounding::stochastic, Overflow::saturate}) ==
        "fp8_e4m3/stochastic/saturate");
  CHECK(parse_quantizer("fp16") == Quantizer{fp16});
  CHECK(parse_quantizer("fp16/saturate") == Quantizer{fp16, Rounding::nearest_even, Overflow::saturate});
  CHECK(parse_quantizer("fp16/saturate/up") == Quantizer{fp16, Rounding::up, Overflow::saturate});
  CHECK(parse_quantizer("fp16/up/saturate") == Quantizer{fp16, Rounding::up, Overflow::saturate});
  CHECK(parse_quantizer("bf16/nearest_even/infinity") == Quantizer{bf16});
}

TEST_CASE("a wrong name is refused with what would be right", "[quantizer]") {
  check_says(message_of<InvalidArgument>([] { (void)parse_format("fp161"); }), {"'fp161'", "'fp16'", "eXmY"});
  check_says(message_of<InvalidArgument>([] { (void)parse_quantizer("fp16/stochstic"); }),
             {"'fp16/stochstic'", "'stochastic'"});
  check_says(message_of<InvalidArgument>([] { (void)parse_quantizer("fp16/saturated"); }), {"'saturate'"});
  check_says(message_of<InvalidArgument>([] { (void)parse_quantizer("fp16/up/down"); }),
             {"more than one rounding"});
  check_says(message_of<InvalidArgument>([] { (void)parse_quantizer("fp16/saturate/infinity"); }),
             {"more than one overflow policy"});
  check_says(message_of<InvalidArgument>([] { (void)parse_format("e8m7fn"); }), {"'e8m7fn'", "2 to 7"});
  for (const char* name : {"e9m3", "e1m3", "e5m24", "e99999999999m1", "e5m24_ftz"}) {
    INFO(name);
    CHECK_THROWS_AS(parse_format(name), InvalidArgument);
  }
  for (const char* name :
       {"", "e", "e5", "e5m", "em2", "e5m2x", "e5m2fnn", "e-5m2", "e+5m2", "e05m2", "e5m02", "e0m3", "e5m0",
        "E5M2", " fp16", "fp16 ", "_ftz", "fp16_ftz_ftz", "fp16fn"}) {
    INFO(name);
    CHECK_THROWS_AS(parse_format(name), InvalidArgument);
  }
  for (const char* name :
       {"", "/", "fp16/", "fp16//up", "/up", "fp16/up/", "fp16/up/saturate/", "fp16/fp16"}) {
    INFO(name);
    CHECK_THROWS_AS(parse_quantizer(name), InvalidArgument);
  }
}

}  // namespace
}  // namespace halfscope::quantizer_test
