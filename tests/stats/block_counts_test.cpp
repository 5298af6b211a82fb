// Counts per block against a count one by one.
#include <halfscope/stats/block_counts.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::block_counts_test {
namespace {

TEST_CASE("a block's elements are counted by what becomes of them", "[block]") {
  // floor: amax 7 has the scale 1. E2M1 ends at 6, rounds to it below 7, has 0.5 as its smallest number.
  std::vector<float> values{7, 6.5f, -6, 1, 0.5f, 0.26f, 0.25f, -0.1f, 0, -0.0f};
  values.resize(96);
  values[40] = NAN;
  const BlockCounts counts = count_blocks(values, {1, 96}, parse_block_format("mxfp4/floor"));
  CHECK(counts.elements == 96);
  CHECK(counts.zeros == 96 - 9);
  CHECK(counts.nonfinite == 1);
  CHECK(counts.flushed == 2);
  CHECK(counts.flushed_by_scale == 0);
  CHECK(counts.subnormal == 2);
  CHECK(counts.clipped == 2);
  CHECK(counts.overflow == 1);
  CHECK(counts.blocks == 3);
  CHECK(counts.zero_blocks == 1);
  CHECK(counts.nonfinite_blocks == 1);
  CHECK((counts.clipped_blocks == 1 && counts.overflow_blocks == 1));
  CHECK((counts.nan_scales == 1 && counts.least_scales == 1 && counts.largest_scales == 0));
  CHECK((counts.scale_codes[127] == 1 && counts.scale_codes[255] == 1 && counts.scale_codes[0] == 1));
  const auto exponent = [&](int e) {
    return counts.exponents[static_cast<std::size_t>(e - BlockCounts::first_exponent)];
  };
  CHECK(
      (exponent(2) == 3 && exponent(0) == 1 && exponent(-1) == 1 && exponent(-2) == 2 && exponent(-4) == 1));
  const double signal = 49 + 42.25 + 36 + 1 + 0.25 + 0.0676 + 0.0625 + 0.01;
  const double error = 1 + 0.25 + 0.0576 + 0.0625 + 0.01;
  CHECK(counts.relative_squared_error() == Approx(error / signal).epsilon(2e-4));
  CHECK(counts.signal_to_noise_db() == Approx(10 * std::log10(signal / error)).epsilon(1e-3));
}

TEST_CASE("a scale that flushes is the cause, though the codes are the largest", "[block]") {
  std::vector<float> values(64);
  values[0] = 2688;
  values[16] = 1e-3f;
  values[17] = -1e-4f;
  const BlockFormat format = parse_block_format("nvfp4");
  const BlockCounts counts = count_blocks(values, {1, 64}, format);
  CHECK((counts.flushed == 2 && counts.flushed_by_scale == 2 && counts.clipped == 0));
  CHECK((counts.zero_scales == 3 && counts.zero_blocks == 2 && counts.largest_scales == 1));
  CHECK(quantise_blocks(values, {1, 64}, format).elements[16] == 7);
}

TEST_CASE("zeros of a tensor that overflows torchao's factor are zeros, and none is lost", "[block]") {
  for (const float amax : {1e-35f, 7.8e-36f, 1e-38f, 1e-44f}) {
    std::vector<float> values(64);
    values[3] = amax;
    values[40] = -amax;
    const BlockCounts counts = count_blocks(values, {1, 64}, parse_block_format("nvfp4/torchao"));
    INFO(amax);
    CHECK((counts.zeros == 62 && counts.lost == 0 && counts.nonfinite == 0));
  }
}

TEST_CASE("TransformerEngine's scales with head room clip nothing where they are normal numbers", "[block]") {
  const BlockFormat format = parse_block_format("nvfp4/te_head_room");
  std::int64_t clipped = 0;
  for (int i = 0; i < 4000; ++i) {
    // The tensor's largest magnitude is 1; the block's goes from 2^-17 up, and its scale is normal from
    // 1/28672 on.
    const float amax = std::exp2(-17 + 17 * static_cast<float>(i) / 4000);
    std::vector<float> values(32);
    values[0] = 1;
    values[16] = amax;
    const BlockCounts counts = count_blocks(values, {1, 32}, format);
    INFO(amax);
    if (amax >= 1.0f / 28672) CHECK(counts.clipped == 0);
    clipped += counts.clipped;
  }
  CHECK(clipped > 100);
}

TEST_CASE("a block is at risk if it overflows, is not finite, or loses its scale", "[block]") {
  std::vector<float> values(160, 1);
  values[0] = 6.5f;       // clips, and is nearest to 6
  values[32] = 7;         // goes beyond
  values[64] = INFINITY;  // takes the block with it
  for (std::size_t i = 96; i < 128; ++i) values[i] = 0;
  const BlockCounts mx = count_blocks(values, {1, 160}, parse_block_format("mxfp4/floor"));
  CHECK((mx.clipped_blocks == 2 && mx.overflow_blocks == 1 && mx.blocks_at_risk == 2));
  CHECK((mx.nonfinite == 1 && mx.lost == 31));
  // 0 / 0 in the block of zeros.
  const BlockFormat deepseek = parse_block_format("block(fp8_e4m3, 1x32, fp32/deepseek)");
  values[64] = 1;
  const BlockCounts fp32 = count_blocks(values, {1, 160}, deepseek);
  CHECK((fp32.blocks_at_risk == 1 && fp32.lost == 32 && fp32.zeros == 32));
  // Scales that underflow, but for those of 1e6 and of 7.
  values[0] = 1e6f;
  const BlockCounts nvfp4 = count_blocks(values, {1, 160}, parse_block_format("nvfp4"));
  CHECK((nvfp4.flushed_by_scale > 0 && nvfp4.lost == 0));
  CHECK(nvfp4.blocks_at_risk == 10 - 2 - nvfp4.zero_blocks);
}

TEST_CASE("counts add up, merge, and do not depend on threads", "[block]") {
  std::vector<float> values = normal_floats(200 * 512, 3);
  for (std::size_t i = 0; i < values.size(); i += 7) values[i] *= 1e-6f;
  for (const NamedBlockFormat& entry : block_formats) {
    BlockCounts expected;
    for (const int threads : {1, 3}) {
      const Threads in_use(threads);
      std::vector<float> rounded(values.size()), direct(values.size());
      const BlockCounts counts = count_blocks(values, {200, 512}, entry.format, {}, rounded);
      if (threads == 1) expected = counts;
      round_blocks(values, direct, {200, 512}, entry.format);
      INFO(entry.name << ", " << threads);
      CHECK(counts == expected);
      CHECK(std::ranges::equal(rounded, direct, same_bits));
    }
    std::int64_t scales = 0;
    for (const std::int64_t count : expected.scale_codes) scales += count;
    CHECK((scales == expected.blocks && expected.elements == std::ssize(values)));
    if (entry.format.tensor_scale == TensorScale::fp32 || entry.format.block.rows > 1) continue;
    BlockCounts merged = count_blocks(std::span(values).first(64 * 512), {64, 512}, entry.format);
    merged.merge(count_blocks(std::span(values).subspan(64 * 512), {136, 512}, entry.format));
    CHECK(merged == expected);
  }
}

TEST_CASE("a matrix and a result of other sizes are refused", "[block]") {
  std::vector<float> values(10), rounded(9);
  check_says(message_of<InvalidArgument>([&] {
               (void)count_blocks(values, {1, 10}, {}, {}, rounded);
             }),
             {"10", "9"});
}

}  // namespace
}  // namespace halfscope::block_counts_test
