// Names of block formats: what is printed is read back, and what is wrong is named.
#include <halfscope/format/block_format.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::block_format_test {
namespace {

TEST_CASE("every named block format is read back with every rule and rounding", "[block]") {
  for (const NamedBlockFormat& entry : block_formats) {
    CHECK(to_string(entry.format) == entry.name);
    CHECK(parse_block_format(entry.name) == entry.format);
    for (const ScaleRule& rule : scale_rules) {
      if (rule.scale != entry.format.scale()) continue;
      BlockFormat format = entry.format;
      format.rule = &rule;
      for (const int random_bits : {0, 8}) {
        format.element.rounding = Rounding::stochastic;
        format.element.random_bits = random_bits;
        INFO(to_string(format));
        CHECK(parse_block_format(to_string(format)) == format);
      }
    }
  }
}

TEST_CASE("a block format is written by its parts", "[block]") {
  const BlockFormat format = parse_block_format("block(e4m3/toward_zero, 2x64, e8m0/floor)");
  CHECK(format.element.format == e4m3);
  CHECK(format.element.rounding == Rounding::toward_zero);
  CHECK(format.element.overflow == Overflow::saturate);
  CHECK(format.block == BlockShape{2, 64});
  CHECK(format.rule->name == "floor");
  CHECK(to_string(format) == "block(e4m3/toward_zero, 2x64, e8m0/floor)");
  CHECK(parse_block_format("block( fp8_e4m3 ,1 x 32,e8m0 / rceil )") == parse_block_format("mxfp8_e4m3"));
  CHECK(to_string(parse_block_format("block(fp8_e4m3, 1x32, e8m0/even)")) == "mxfp8_e4m3/even");
  CHECK(to_string(parse_block_format("block(fp4_e2m1, 1x32, ue4m3/te, fp32)")) ==
        "block(fp4_e2m1, 1x32, ue4m3/te, fp32)");
  CHECK(to_string(parse_block_format("mxfp4_e2m1/stochastic(4)/floor")) == "mxfp4/floor/stochastic(4)");
}

TEST_CASE("a wrong block format is refused with what would be right", "[block]") {
  const auto refusal = [](const char* text) {
    return message_of<InvalidArgument>([text] { (void)parse_block_format(text); });
  };
  check_says(refusal("mxfp9"), {"'mxfp9'", "mxfp8_e4m3", "block(ELEMENT"});
  check_says(refusal("fp8_1x128/floor"), {"fp32 scales", "'floor'", "deepgemm"});
  check_says(refusal("mxfp4/te"), {"e8m0 scales", "'te'", "rceil"});
  check_says(refusal("mxfp4/floor/even"), {"more than one rule"});
  check_says(refusal("mxfp4/floor/up/down"), {"more than one rounding"});
  check_says(refusal("block(fp8_e4m3, 1x32, e8m0)"), {"SCALE/RULE"});
  check_says(refusal("block(fp8_e4m3, 0x32, e8m0/floor)"), {"1 to 4096"});
  check_says(refusal("block(fp8_e4m3, 32, e8m0/floor)"), {"ROWSxCOLUMNS"});
  check_says(refusal("block(fp16, 1x32, e8m0/floor)"), {"at most 8 bits", "fp16"});
  check_says(refusal("block(ue4m3, 1x32, e8m0/floor)"), {"have a sign", "ue4m3"});
  check_says(refusal("block(fp8_e4m3, 1x16, ue4m3/te, fp32)"), {"fp4_e2m1"});
  check_says(refusal("block(fp4_e2m1, 1x16, ue4m3/te)"), {"needs a tensor scale"});
  check_says(refusal("block(fp4_e2m1, 1x32, e8m0/floor, fp32)"), {"no tensor scale"});
  check_says(refusal("block(fp4_e2m1, 1x32, e4m3/te)"), {"'e4m3'", "'ue4m3'"});
  check_says(refusal("block(fp8_e4m3, 1x32, e8m0/rceil"), {"block(ELEMENT"});
}

TEST_CASE("names of block formats are told from those of formats", "[block]") {
  for (const char* name : {"mxfp4", "nvfp4/torchao", "block(fp16", "mxfp7", "fp8_1x128"})
    CHECK(is_block_format_name(name));
  for (const char* name : {"fp16", "fp8_e4m3/saturate", "e4m3", "p3109_k8p4se", ""})
    CHECK_FALSE(is_block_format_name(name));
}

}  // namespace
}  // namespace halfscope::block_format_test
