// Counts of operands with one scale, and the range of the scales of blocks.
#include <halfscope/stats/block_counts.hpp>

#include <limits>
#include <vector>

#include "tests/support/catch.hpp"

namespace halfscope::scale_range_test {
namespace {

TEST_CASE("an operand with one scale is counted as one block", "[block_counts]") {
  const std::vector<float> values{0, 1, -500, 1e-4f, 456};
  const Quantizer e4m3{.format = fp8_e4m3};
  const BlockCounts plain = count_scaled(values, e4m3, 1);
  CHECK(plain.elements == 5);
  CHECK(plain.zeros == 1);
  CHECK(plain.flushed == 1);   // below half of 2^-9
  CHECK(plain.clipped == 2);   // above 448
  CHECK(plain.overflow == 1);  // above 464
  CHECK((plain.blocks == 1 && plain.clipped_blocks == 1 && plain.overflow_blocks == 1 &&
         plain.zero_blocks == 0));
  const BlockCounts scaled = count_scaled(values, e4m3, 0.5f);
  CHECK((scaled.clipped == 0 && scaled.clipped_blocks == 0 && scaled.flushed == 1));
  REQUIRE(scaled.scale_range(ScaleFormat::fp32).has_value());
  CHECK(scaled.scale_range(ScaleFormat::fp32)->low == 1);
  CHECK(scaled.scale_range(ScaleFormat::fp32)->high == 1);
  const std::vector<float> zeros(3);
  CHECK(count_scaled(zeros, e4m3, 1).zero_blocks == 1);
}

TEST_CASE("the range of scales leaves blocks of zeros and NaN out", "[block_counts]") {
  std::vector<float> values(4 * 32);
  values[32] = 6;             // scale 1
  values[64] = 6 * 0x1p-20f;  // scale 2^-20
  const BlockFormat mxfp4 = parse_block_format("mxfp4");
  const auto range = count_blocks(values, {4, 32}, mxfp4).scale_range(ScaleFormat::e8m0);
  REQUIRE(range.has_value());
  CHECK((range->low == -20 && range->high == 0));
  values[96] = std::numeric_limits<float>::quiet_NaN();
  const auto with_nan = count_blocks(values, {4, 32}, mxfp4).scale_range(ScaleFormat::e8m0);
  CHECK((with_nan->low == -20 && with_nan->high == 0));
  values[96] = 0x1p-148f;  // its scale is 2^-127 too, as that of a block that is not all zeros
  CHECK(count_blocks(values, {4, 32}, mxfp4).scale_range(ScaleFormat::e8m0)->low == -127);
  CHECK_FALSE(
      count_blocks(std::vector<float>(32), {1, 32}, mxfp4).scale_range(ScaleFormat::e8m0).has_value());
}

}  // namespace
}  // namespace halfscope::scale_range_test
