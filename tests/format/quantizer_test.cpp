// Names of formats and quantizers: what is printed is read back, and what is wrong is named.
#include <halfscope/format/quantizer.hpp>

#include <fmt/format.h>

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
          FloatFormat format{exponent_bits, mantissa_bits, specials, subnormals};
          if (exponent_bits == 8 && specials != Specials::ieee) continue;
          CHECK(parse_format(to_string(format)) == format);
          for (const int bias_offset : {-1, 1, 3, 25}) {
            format.bias_offset = bias_offset;
            if (exponent_bits > 6 || format.bias() < 1) continue;
            CHECK(parse_format(to_string(format)) == format);
          }
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
  CHECK(to_string(FloatFormat{3, 3, Specials::finite_only}) == "e3m3f");
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

TEST_CASE("every format of IEEE P3109 within FP32 is read back from its name", "[quantizer]") {
  int named = 0;
  for (int width = 3; width <= 16; ++width) {
    for (int precision = 1; precision <= width; ++precision) {
      for (const char* kind : {"se", "sf", "ue", "uf"}) {
        const std::string name = fmt::format("p3109_k{}p{}{}", width, precision, kind);
        const int exponent_bits = width - precision + (kind[0] == 's' ? 0 : 1);
        INFO(name);
        if (exponent_bits < 1 || exponent_bits > 7) {
          CHECK_THROWS_AS(parse_format(name), InvalidArgument);
          continue;
        }
        const FloatFormat format = parse_format(name);
        CHECK(parse_format(to_string(format)) == format);
        const bool has_usual_name = kind[1] == 'f' && kind[0] == 's' && exponent_bits > 1 && precision > 1;
        CHECK(has_usual_name == (to_string(format).find("fnuz") != std::string::npos));
        ++named;
      }
    }
  }
  CHECK(named == 2 * (83 + 88));  // signed and unsigned, each finite and extended
}

TEST_CASE("formats of other names and without a sign are read", "[quantizer]") {
  CHECK(parse_format("p3109_k8p4sf") == fp8_e4m3fnuz);
  CHECK(parse_format("p3109_k8p3sf") == fp8_e5m2fnuz);
  CHECK(parse_format("e4m3b11fnuz") == fp8_e4m3b11fnuz);
  CHECK(parse_format("ue4m3") == ue4m3);
  CHECK(parse_format("ue5m3") == ue5m3);
  CHECK(to_string(ue4m3) == "ue4m3");
  CHECK(to_string(parse_format("p3109_k8p4se")) == "p3109_k8p4se");
  CHECK(to_string(parse_format("p3109_k8p4uf_ftz")) == "p3109_k8p4uf_ftz");
}

TEST_CASE("a format that OCP gives other specials says so", "[quantizer]") {
  for (const auto& [name, ocp] : {std::pair{"e4m3", "fp8_e4m3"},
                                  {"e2m1", "fp4_e2m1"},
                                  {"e2m1_ftz", "fp4_e2m1"},
                                  {"e3m2", "fp6_e3m2"},
                                  {"e2m3", "fp6_e2m3"}}) {
    INFO(name);
    const std::string note = look_alike_note(parse_format(name));
    CHECK((note.find(ocp) != std::string::npos) == !std::string_view(name).ends_with("_ftz"));
  }
  for (const char* name : {"fp8_e4m3", "fp8_e5m2", "fp16", "fp4_e2m1", "fp8_e4m3fnuz", "e3m4"})
    CHECK(look_alike_note(parse_format(name)).empty());
}

TEST_CASE("the number of random bits is part of a quantizer's name", "[quantizer]") {
  for (int bits = 1; bits <= most_random_bits; ++bits) {
    const Quantizer q{fp4_e2m1, Rounding::stochastic, Overflow::saturate, bits};
    CHECK(to_string(q) == fmt::format("fp4_e2m1/stochastic({})/saturate", bits));
    CHECK(parse_quantizer(to_string(q)) == q);
  }
  for (const char* name : {"fp16/stochastic(0)", "fp16/stochastic(17)", "fp16/stochastic(04)",
                           "fp16/stochastic()", "fp16/stochastic(4", "fp16/stochastic(4)x", "fp16/up(4)"}) {
    INFO(name);
    CHECK_THROWS_AS(parse_quantizer(name), InvalidArgument);
  }
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
  for (const char* name : {"",
                           "e",
                           "e5",
                           "e5m",
                           "em2",
                           "e5m2x",
                           "e5m2fnn",
                           "e-5m2",
                           "e+5m2",
                           "e05m2",
                           "e5m02",
                           "e0m3",
                           "e5m0",
                           "E5M2",
                           "e5m2b",
                           "e4m3b0fn",
                           "ue4m3fn",
                           "uue4m3",
                           "p3109_k8p4",
                           "p3109_k8p4xx",
                           "p3109_k8p0se",
                           "p3109_k9p1se",
                           "p3109_k2p1ue",
                           "p3109_k8p8se",
                           "e7m3b1",
                           "e3m3b200",
                           " fp16",
                           "fp16 ",
                           "_ftz",
                           "fp16_ftz_ftz",
                           "fp16fn"}) {
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
