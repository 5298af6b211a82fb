// Names of formats with and without blocks, and the bits that they take.
#include <halfscope/format/tensor_format.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"

namespace halfscope::tensor_format_test {
namespace {

TEST_CASE("a tensor format is a quantizer or a block format by its name", "[block]") {
  for (const char* name :
       {"fp16", "fp8_e4m3/saturate", "mxfp4/floor", "nvfp4/torchao", "block(fp8_e4m3, 1x64, e8m0/rceil)"}) {
    CHECK(to_string(parse_tensor_format(name)) == name);
  }
  CHECK(std::holds_alternative<Quantizer>(parse_tensor_format("fp4_e2m1")));
  CHECK(std::holds_alternative<BlockFormat>(parse_tensor_format("mxfp4")));
  CHECK(element_format(parse_tensor_format("nvfp4")) == fp4_e2m1);
  check_says(message_of<InvalidArgument>([] { (void)parse_tensor_format("mxfp5"); }), {"mxfp5", "mxfp4"});
  check_says(message_of<InvalidArgument>([] { (void)parse_tensor_format("fp18"); }), {"fp18", "mxfp4"});
  for (const char* scales : {"e8m0", "ue8m0", "float8_e8m0fnu"}) {
    check_says(message_of<InvalidArgument>([&] { (void)parse_tensor_format(scales); }),
               {scales, "scales of MX blocks", "mxfp8_e4m3"});
  }
  check_says(message_of<InvalidArgument>([] { (void)parse_tensor_format("fp16/fast"); }), {"fast"});
}

TEST_CASE("stored bits count scales and the tensor's scale", "[block]") {
  const auto bits = [](const char* name, std::int64_t elements, std::int64_t blocks) {
    return stored_bits(parse_tensor_format(name), elements, blocks);
  };
  CHECK(bits("bf16", 100, 1) == 1600);
  CHECK(bits("fp8_e4m3", 100, 1) == 800);
  CHECK(bits("mxfp4", 64, 2) == 64 * 4 + 2 * 8);
  CHECK(bits("mxfp6_e2m3", 64, 2) == 64 * 6 + 2 * 8);
  CHECK(bits("nvfp4", 64, 4) == 64 * 4 + 4 * 8 + 32);
  CHECK(bits("fp8_128x128", 16384, 1) == 16384 * 8 + 32);
}

}  // namespace
}  // namespace halfscope::tensor_format_test
