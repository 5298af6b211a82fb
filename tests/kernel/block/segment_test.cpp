// Blocks by whole segments beside their definition, element by element.
#include <halfscope/arithmetic/normal.hpp>
#include <halfscope/core/isa.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/kernel/block/detail/block_element.hpp>
#include <halfscope/kernel/block/quantise.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"

namespace halfscope::segment_test {
namespace {

/// Normal numbers over many binades; every 37th is a zero, an infinity, a NaN, or subnormal in FP32.
std::vector<float> wide_floats(std::size_t count, bool with_specials) {
  constexpr std::array specials{0.0f, -0.0f, INFINITY, -INFINITY, NAN, -NAN, 1e-40f, -1e-42f, 3e38f};
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = std::ldexp(normal_pair({.seed = 3}, i / 2)[i % 2], static_cast<int>(i * 7 % 23) - 11);
    if (with_specials && i % 37 == 5) values[i] = specials[i / 37 % specials.size()];
  }
  return values;
}

constexpr RandomStream stream{.seed = 9, .step = 2, .site = 4};  // drawn from by stochastic rounding alone

/// The definition: each block's scale, each element rounded and encoded by itself.
BlockCodes defined_codes(std::span<const float> values, const MatrixShape& shape, const BlockFormat& format) {
  const MatrixShape grid = block_grid(shape, format.block);
  const float amax = detail::tensor_maximum(values, format);
  BlockCodes codes{shape, std::vector<std::uint8_t>(values.size()), {}, detail::tensor_factors(amax, format)};
  const detail::ElementRounding element(format, stream);
  for (std::int64_t block = 0; block < grid.rows * grid.columns; ++block) {
    const detail::BlockRange range = detail::block_range(shape, format.block, block);
    const BlockScale scale = detail::choose_scale(values, range, format, codes.tensor, amax);
    codes.scales.push_back(scale.code);
    range.for_each([&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      codes.elements[at] =
          static_cast<std::uint8_t>(encode(element(values[at], scale, i), format.element.format));
    });
  }
  return codes;
}

void check_segments(const BlockFormat& format, const MatrixShape& shape, bool with_specials) {
  INFO(to_string(format) << ", " << shape.rows << " x " << shape.columns << ", specials " << with_specials);
  const auto count = static_cast<std::size_t>(shape.rows * shape.columns);
  const std::vector<float> values = wide_floats(count, with_specials);
  const BlockCodes expected = defined_codes(values, shape, format);
  std::vector<float> numbers(count);
  decode_blocks(expected, format, numbers);
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    INFO(name_of(isa));
    const BlockCodes codes = quantise_blocks(values, shape, format, stream);
    CHECK(codes.scales == expected.scales);
    CHECK(codes.elements == expected.elements);
    std::vector<float> rounded = values;
    round_blocks(rounded, rounded, shape, format, stream);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) wrong += same_bits(rounded[i], numbers[i]) ? 0U : 1U;
    CHECK(wrong == 0);
  }
}

TEST_CASE("codes and values of segments are those of the elements one by one", "[block]") {
  for (const NamedBlockFormat& entry : block_formats) {
    for (const ScaleRule& rule : scale_rules) {
      if (rule.scale != entry.format.scale()) continue;
      BlockFormat format = entry.format;
      format.rule = &rule;
      for (const MatrixShape& shape : {MatrixShape{1, 1}, {3, 31}, {17, 259}, {2, 2100}}) {
        check_segments(format, shape, false);
        check_segments(format, shape, true);
      }
    }
  }
}

TEST_CASE("rows of ordinary blocks are rounded in every element format and step", "[block]") {
  for (const char* name : {"block(e3m4, 1x48, e8m0/floor)", "block(e6m1, 2x16, e8m0/ceil)",
                           "block(p3109_k8p4se, 1x32, e8m0/even)", "block(p3109_k5p1se, 1x32, e8m0/rceil)",
                           "block(float8_e4m3fnuz, 1x32, e8m0/rceil)", "block(e2m3, 1x16, fp32/deepseek)",
                           "block(fp8_e5m2, 5x80, fp32/te)", "nvfp4/modelopt", "nvfp4_16x16/torchao"}) {
    for (const MatrixShape& shape : {MatrixShape{3, 16}, {7, 79}, {6, 1100}})
      check_segments(parse_block_format(name), shape, false);
  }
}

TEST_CASE("segments are cut where a block is wider than they are, or one column wide", "[block]") {
  for (const char* name : {"block(fp8_e4m3, 1x1500, e8m0/rceil)", "block(fp4_e2m1, 32x1, e8m0/floor)",
                           "block(fp6_e3m2, 3x7, fp32/te)"}) {
    for (const MatrixShape& shape : {MatrixShape{5, 3100}, {65, 40}})
      check_segments(parse_block_format(name), shape, true);
  }
}

TEST_CASE("elements rounded stochastically are those of the elements one by one", "[block]") {
  for (const char* name :
       {"mxfp8_e4m3/stochastic", "mxfp8_e5m2/stochastic(3)", "nvfp4/stochastic(8)",
        "nvfp4_16x16/stochastic(8)", "nvfp4/modelopt/stochastic", "fp8_1x128/stochastic(4)",
        "nvfp4/four_over_six_mse_256/stochastic(8)", "block(float8_e4m3fnuz/stochastic, 1x48, e8m0/rceil)",
        "block(fp8_e5m2/stochastic(2), 3x1500, e8m0/floor)"}) {
    for (const MatrixShape& shape : {MatrixShape{1, 1}, {3, 31}, {37, 259}, {2, 2100}, {9, 5000}})
      check_segments(parse_block_format(name), shape, true);
  }
}

}  // namespace
}  // namespace halfscope::segment_test
