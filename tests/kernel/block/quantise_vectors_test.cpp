// Block formats against golden blocks: the sample in tests/golden/blocks, or every set in the folder that
// CMake names.
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/block/quantise.hpp>

#include <map>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/golden_lines.hpp"

namespace halfscope::quantise_vectors_test {
namespace {

/// A line's block format, and what it gives.
struct Expected {
  std::string format;
  std::vector<float> values;
  std::vector<std::uint32_t> scales, elements;
  std::uint32_t tensor_scale = 0x3F800000u;
};

/// In a block whose scale is NaN, what element codes are is open; FP32's NaN scales do not occur.
bool is_right(const Expected& expected) {
  const BlockFormat format = parse_block_format(expected.format);
  const MatrixShape shape{1, std::ssize(expected.values)};
  const BlockCodes codes = quantise_blocks(expected.values, shape, format);
  if (codes.scales != expected.scales || to_bits(codes.tensor.scale) != expected.tensor_scale) return false;
  if (format.scale() == ScaleFormat::e8m0 && expected.scales[0] == e8m0::nan_code) {
    std::vector<float> numbers(expected.values.size());
    decode_blocks(codes, format, numbers);
    return std::ranges::all_of(numbers, [](float x) { return std::isnan(x); });
  }
  return std::ranges::equal(codes.elements, expected.elements);
}

Expected mx_line(const Words& words) {
  static const std::map<std::string, std::string> names{{"e4m3", "mxfp8_e4m3"},
                                                        {"e5m2", "mxfp8_e5m2"},
                                                        {"e3m2", "mxfp6_e3m2"},
                                                        {"e2m3", "mxfp6_e2m3"},
                                                        {"e2m1", "mxfp4"}};
  return {names.at(words[0]) + "/" + words[1], floats_of(words[2]), hex_numbers(words[3], 2),
          hex_numbers(words[4], 2)};
}

Expected nvfp4_line(const Words& words) {
  static const std::map<std::string, std::string> rules{{"te", "te"},
                                                        {"te_46_mae_448", "four_over_six_mae_448"},
                                                        {"te_46_mse_256", "four_over_six_mse_256"},
                                                        {"torchao", "torchao"},
                                                        {"modelopt", "modelopt"}};
  return {"nvfp4/" + rules.at(words[0]), floats_of(words[1]), hex_numbers(words[3], 2),
          hex_numbers(words[4], 1), hex_numbers(words[2], 8)[0]};
}

Expected fp8_line(const Words& words) {
  return {"fp8_1x128/" + words[0], floats_of(words[1]), hex_numbers(words[2], 8), hex_numbers(words[3], 2)};
}

/// Counts lines, and those that differ.
void check_file(const char* name, Expected (*expected_of)(const Words&), int lines_of_full_set) {
  int lines = 0;
  for_each_line(vectors_folder() / name, [&](const Words& words) {
    const Expected expected = expected_of(words);
    INFO(expected.format << ", line " << lines + 1);
    CHECK(is_right(expected));
    ++lines;
  });
  CHECK((has_full_set() ? lines == lines_of_full_set : lines > 10));
}

TEST_CASE("golden MX blocks have their scales and codes", "[block][vectors]") {
  check_file("quantised_mx.txt", mx_line, 360);
}

TEST_CASE("golden NVFP4 rows have their scales and codes", "[block][vectors]") {
  check_file("quantised_nvfp4.txt", nvfp4_line, 78);
}

TEST_CASE("golden FP8 blocks have their scales and codes", "[block][vectors]") {
  check_file("quantised_fp8.txt", fp8_line, 80);
}

}  // namespace
}  // namespace halfscope::quantise_vectors_test
