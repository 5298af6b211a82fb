// Quantised blocks: scales of special blocks by rule, padding, tiles, threads, stochastic rounding and the
// Hadamard transform.
#include <halfscope/kernel/block/quantise.hpp>

#include <halfscope/core/parallel.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/random_arrays.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::quantise_test {
namespace {

/// Scale and code of the largest element of a block of 32 with one element `amax`.
std::pair<unsigned, unsigned> largest_of_block(const char* format, float amax) {
  std::vector<float> values(32);
  values[5] = amax;
  const BlockCodes codes = quantise_blocks(values, {1, 32}, parse_block_format(format));
  return {codes.scales[0], codes.elements[5]};
}

TEST_CASE("scales and largest codes are those of the published rules, across the edges", "[block]") {
  struct Row {
    const char* format;
    float amax;
    std::pair<unsigned, unsigned> expected;
  };
  for (const auto& [format, amax, expected] : {Row{"mxfp8_e4m3/floor", 0x1p-130f, {0, 0x20}},
                                               {"mxfp8_e4m3/floor", 500, {127, 0x7e}},
                                               {"mxfp8_e4m3/floor", 512, {128, 0x78}},
                                               {"mxfp8_e4m3/ceil", 448, {128, 0x76}},
                                               {"mxfp8_e4m3/even", 449, {127, 0x7e}},
                                               {"mxfp8_e4m3/even", 500, {128, 0x78}},
                                               {"mxfp8_e4m3/even", 3e38f, {246, 0x7e}},
                                               {"mxfp8_e4m3", 449, {128, 0x76}},
                                               {"mxfp8_e4m3", 3e38f, {247, 0x76}},
                                               {"mxfp4/floor", 7.5f, {127, 7}},
                                               {"mxfp4/floor", 8, {128, 6}},
                                               {"mxfp4/even", 7, {128, 6}},
                                               {"mxfp4", 6.5f, {128, 5}},
                                               {"mxfp4/ceil", 3, {127, 5}},
                                               {"mxfp4/nearest", 8, {127, 7}},
                                               {"mxfp4/nearest", 9, {128, 6}}}) {
    INFO(format << " of " << amax);
    CHECK(largest_of_block(format, amax) == expected);
  }
}

TEST_CASE("blocks of zeros have finite scales and values, but for DeepSeek's rule", "[block]") {
  const std::vector<float> zeros(256);
  for (const NamedBlockFormat& entry : block_formats) {
    for (const ScaleRule& rule : scale_rules) {
      if (rule.scale != entry.format.scale()) continue;
      BlockFormat format = entry.format;
      format.rule = &rule;
      std::vector<float> rounded(zeros.size(), 1.0f);
      round_blocks(zeros, rounded, {2, 128}, format);
      INFO(to_string(format));
      const bool is_nan = std::string_view(rule.name) == "deepseek";
      CHECK(std::ranges::all_of(rounded, [&](float x) { return is_nan ? std::isnan(x) : same_bits(x, 0); }));
    }
  }
}

TEST_CASE("zeros stay zeros beside numbers of any size, but under DeepSeek's rule", "[block]") {
  std::vector<float> values(256);
  for (const ScaleRule& rule : scale_rules) {
    if (rule.name == "deepseek") continue;  // divides by a scale that can be zero
    for (const NamedBlockFormat& entry : block_formats) {
      if (rule.scale != entry.format.scale()) continue;
      BlockFormat format = entry.format;
      format.rule = &rule;
      for (int exponent = -149; exponent <= 127; ++exponent) {
        for (const float significand : {1.0f, 1.75f}) {
          for (std::size_t i = 3; i < values.size(); i += 16) values[i] = std::ldexp(significand, exponent);
          std::vector<float> rounded(values.size());
          round_blocks(values, rounded, {2, 128}, format);
          INFO(to_string(format) << " of " << values[3]);
          for (std::size_t i = 0; i < values.size(); ++i)
            if (values[i] == 0) REQUIRE(rounded[i] == 0);
        }
      }
    }
  }
}

TEST_CASE("the scales of rows are those of the blocks that hold their runs", "[block]") {
  for (const MatrixShape& shape : {MatrixShape{1, 1}, {3, 16}, {17, 33}, {40, 257}}) {
    for (const BlockShape& block : {BlockShape{1, 16}, {16, 16}, {5, 48}, {64, 128}}) {
      const MatrixShape grid = block_grid(shape, block);
      BlockCodes codes{.shape = shape};
      for (std::int64_t i = 0; i < grid.rows * grid.columns; ++i)
        codes.scales.push_back(static_cast<std::uint32_t>(7 * i + 1));
      const auto scales = scales_of_rows(codes, block, 16);
      const std::int64_t runs = (shape.columns + 15) / 16;
      REQUIRE(std::ssize(scales) == shape.rows * runs);
      for (std::int64_t row = 0; row < shape.rows; ++row) {
        for (std::int64_t column = 0; column < shape.columns; ++column) {
          const std::int64_t of_block = row / block.rows * grid.columns + column / block.columns;
          CHECK(scales[static_cast<std::size_t>(row * runs + column / 16)] == 7 * of_block + 1);
        }
      }
    }
  }
  check_says(message_of<InvalidArgument>([] { (void)scales_of_rows({}, {2, 24}, 16); }), {"2 x 24", "16"});
}

TEST_CASE("a NaN makes the block NaN, or itself alone where TransformerEngine's rules leave it out",
          "[block]") {
  for (const NamedBlockFormat& entry : block_formats) {
    for (const ScaleRule& rule : scale_rules) {
      if (rule.scale != entry.format.scale() || entry.format.block.rows > 1) continue;
      BlockFormat format = entry.format;
      format.rule = &rule;
      std::vector<float> values(static_cast<std::size_t>(format.block.columns), 1.0f);
      values[3] = NAN;
      std::vector<float> rounded(values.size());
      round_blocks(values, rounded, {1, std::ssize(values)}, format);
      const bool is_left_out = rule.name.starts_with("te") || rule.scale == ScaleFormat::ue4m3;
      INFO(to_string(format));
      CHECK(std::isnan(rounded[4]) == !is_left_out);
      // FP4 has no NaN: its largest number is what the hardware's conversions return.
      CHECK(std::isnan(rounded[3]) == (rule.scale != ScaleFormat::ue4m3));
    }
  }
}

TEST_CASE("an infinity makes an MX block NaN", "[block]") {
  for (const char* format :
       {"mxfp8_e4m3", "mxfp8_e4m3/floor", "mxfp4/even", "mxfp6_e2m3/ceil", "mxfp4/nearest"})
    CHECK(largest_of_block(format, -INFINITY).first == 255);
}

TEST_CASE("short blocks count as if zeros followed", "[block]") {
  for (const NamedBlockFormat& entry : block_formats) {
    const MatrixShape shape{37, 150}, padded{128, 256};
    const std::vector<float> values = normal_floats(37 * 150, 5);
    std::vector<float> wide(128 * 256), rounded(values.size()), rounded_wide(wide.size());
    for (std::size_t row = 0; row < 37; ++row)
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(row * 150), 150,
                  wide.begin() + static_cast<std::ptrdiff_t>(row * 256));
    round_blocks(values, rounded, shape, entry.format);
    round_blocks(wide, rounded_wide, padded, entry.format);
    INFO(entry.name);
    bool is_same = true;
    for (std::size_t row = 0; row < 37; ++row) {
      for (std::size_t column = 0; column < 150; ++column)
        is_same = is_same && same_bits(rounded[row * 150 + column], rounded_wide[row * 256 + column]);
    }
    CHECK(is_same);
  }
}

TEST_CASE("codes do not depend on the threads, nor on whether the output is the input", "[block]") {
  const MatrixShape shape{64, 1000};
  const std::vector<float> values = normal_floats(64 * 1000, 7);
  for (const char* name :
       {"mxfp4", "nvfp4/four_over_six_mse_448", "nvfp4_16x16", "fp8_128x128", "mxfp6_e2m3/stochastic(8)"}) {
    const BlockFormat format = parse_block_format(name);
    std::vector<float> expected(values.size());
    for (const int threads : {1, 2, 3}) {
      const Threads in_use(threads);
      std::vector<float> rounded = values;
      round_blocks(rounded, rounded, shape, format, {.seed = 3});
      if (threads == 1) expected = rounded;
      INFO(name << ", " << threads);
      CHECK(std::ranges::equal(rounded, expected, same_bits));
    }
  }
}

TEST_CASE("rounding twice by power-of-two scales changes nothing", "[block]") {
  const std::vector<float> values = normal_floats(6400, 8);
  for (const char* name : {"mxfp8_e4m3", "mxfp8_e5m2/floor", "mxfp6_e3m2", "mxfp6_e2m3/floor", "mxfp4"}) {
    const BlockFormat format = parse_block_format(name);
    std::vector<float> once(values.size()), twice(values.size());
    round_blocks(values, once, {10, 640}, format);
    round_blocks(once, twice, {10, 640}, format);
    INFO(name);
    CHECK(std::ranges::equal(once, twice, same_bits));
  }
}

TEST_CASE("stochastic rounding in blocks goes to a neighbour, up with the fraction cut off to its bits",
          "[block]") {
  // A scale of 1: the largest element is 6. Between 2 and 3 the step is 1.
  constexpr std::size_t blocks = 40'000;
  std::vector<float> values(32 * blocks, 2.34375f), rounded(values.size());
  for (std::size_t i = 0; i < values.size(); i += 32) values[i] = 6;
  for (const int bits : {1, 2, 4, 8}) {
    const BlockFormat format = parse_block_format("mxfp4/stochastic(" + std::to_string(bits) + ")");
    round_blocks(values, rounded, {1, std::ssize(values)}, format, {.seed = 11});
    const auto ups = std::ranges::count(rounded, 3.0f), downs = std::ranges::count(rounded, 2.0f);
    CHECK(ups + downs == static_cast<std::ptrdiff_t>(31 * blocks));
    const double probability = std::floor(std::ldexp(0.34375, bits)) / std::ldexp(1.0, bits),
                 count = 31.0 * blocks;
    const double sigma = std::sqrt(probability * (1 - probability) * count);
    INFO(bits << " bits");
    CHECK(std::abs(static_cast<double>(ups) - probability * count) <= 5 * sigma);
  }
}

TEST_CASE("the Hadamard transform has its rows, keeps the norm, and is taken back", "[block]") {
  for (std::size_t row = 0; row < 16; ++row) {
    std::vector<float> unit(16);
    unit[row] = 1;
    hadamard_16(unit);
    for (std::size_t column = 0; column < 16; ++column) {
      const float sylvester = std::popcount(row & column) % 2 == 0 ? 1.0f : -1.0f;
      CHECK(unit[column] == hadamard_signs[row] * sylvester / 4);
    }
  }
  std::vector<float> values(64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * i % 37) - 18;
  std::vector<float> mixed = values;
  hadamard_16(mixed);
  CHECK(mixed != values);
  inverse_hadamard_16(mixed);
  CHECK(mixed == values);  // small integers over 16: exact
  check_says(message_of<InvalidArgument>([&] { hadamard_16(std::span(values).first(24)); }), {"24", "16"});
}

TEST_CASE("a matrix of another size is refused", "[block]") {
  const std::vector<float> values(10);
  check_says(message_of<InvalidArgument>([&] {
               (void)quantise_blocks(values, {2, 6}, {});
             }),
             {"10", "2 x 6"});
}

}  // namespace
}  // namespace halfscope::quantise_test
