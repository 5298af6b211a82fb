// Dot products of matrix units against golden lines, which MMA-Sim 2.1.1 and an independent model in exact
// rationals agree on.
#include <halfscope/arithmetic/block_dot.hpp>
#include <halfscope/arithmetic/matrix_core.hpp>
#include <halfscope/arithmetic/tensor_core.hpp>
#include <halfscope/format/encoding.hpp>

#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/golden_lines.hpp"

namespace halfscope::product_vectors_test {
namespace {

using enum TensorCoreGeneration;

std::vector<float> numbers_of(const std::string& word, const FloatFormat& format) {
  std::vector<float> numbers;
  const auto digits = static_cast<std::size_t>((code_width(format) + 3) / 4);
  for (const std::uint32_t code : hex_numbers(word, digits)) numbers.push_back(decode(code, format));
  return numbers;
}

/// A unit's lines: operands a and b, the accumulator c, then the result d.
struct TensorCoreFile {
  const char* name;
  TensorCoreGeneration generation;
  FloatFormat input, output;
  int lines;  ///< lines of the full set
};

constexpr TensorCoreFile tensor_core_files[] = {
    {"volta_f16_f16.txt", volta, fp16, fp16, 79},
    {"ampere_f16_f16.txt", ampere, fp16, fp16, 79},
    {"hopper_f16_f16.txt", hopper, fp16, fp16, 79},
    {"hopper_e4m3_f32.txt", hopper, fp8_e4m3, fp32, 69},
    {"hopper_e5m2_f32.txt", hopper, fp8_e5m2, fp32, 73},
    {"hopper_e4m3_f16.txt", hopper, fp8_e4m3, fp16, 67},
    {"blackwell_e4m3_f32.txt", blackwell, fp8_e4m3, fp32, 69},
    {"blackwell_e4m3_f16.txt", blackwell, fp8_e4m3, fp16, 67},
};

std::uint32_t code_of(float x, const FloatFormat& output) {
  if (output == fp32) return to_bits(x);
  return std::isnan(x) ? 0x7FFFu : encode(x, output);
}

/// Compares each line's result with `result(words)`, and their number with that of the full set.
template <typename Result>
void check_lines(const char* name, int lines_of_full_set, std::size_t word_of_d, const Result& result) {
  int lines = 0;
  for_each_line(vectors_folder() / name, [&](const Words& words) {
    INFO(name << ", line " << lines + 1 << ": " << words[word_of_d]);
    CHECK(result(words) == hex_number(words[word_of_d]));
    ++lines;
  });
  CHECK((has_full_set() ? lines == lines_of_full_set : lines > 10));
}

TEST_CASE("golden dot products of tensor cores have their bits", "[tensor_core][vectors]") {
  for (const TensorCoreFile& file : tensor_core_files) {
    check_lines(file.name, file.lines, 3, [&](const Words& words) {
      const TensorCoreStep& step = tensor_core_step({file.generation}, file.input, file.output);
      const auto a = numbers_of(words[0], file.input), b = numbers_of(words[1], file.input);
      return code_of(dot(a, b, decode(hex_number(words[2]), file.output), step), file.output);
    });
  }
}

/// The lines of a block-scaled unit have the scales of a and b before d.
struct BlockScaledFile {
  const char* name;
  BlockScaledKind kind;
  ScaleFormat scale;
  FloatFormat element;
  int lines;  ///< lines of the full set
};

using enum BlockScaledKind;
constexpr BlockScaledFile block_scaled_files[] = {
    {"mxfp8_e4m3.txt", mxf8f6f4, ScaleFormat::e8m0, fp8_e4m3, 83},
    {"mxfp8_e5m2.txt", mxf8f6f4, ScaleFormat::e8m0, fp8_e5m2, 86},
    {"mxfp6_e3m2.txt", mxf8f6f4, ScaleFormat::e8m0, fp6_e3m2, 80},
    {"mxfp6_e2m3.txt", mxf8f6f4, ScaleFormat::e8m0, fp6_e2m3, 81},
    {"mxfp4_k32.txt", mxf8f6f4, ScaleFormat::e8m0, fp4_e2m1, 78},
    {"mxfp4_k64.txt", mxf4, ScaleFormat::e8m0, fp4_e2m1, 95},
    {"fp4_block16_ue8m0.txt", mxf4nvf4, ScaleFormat::e8m0, fp4_e2m1, 95},
    {"nvfp4.txt", mxf4nvf4, ScaleFormat::ue4m3, fp4_e2m1, 83},
};

std::vector<std::uint8_t> codes_of(const std::string& word, const FloatFormat& element) {
  const std::vector<std::uint32_t> codes = hex_numbers(word, element == fp4_e2m1 ? 1 : 2);
  return {codes.begin(), codes.end()};
}

TEST_CASE("golden dot products of block-scaled tensor cores have their bits", "[block][vectors]") {
  for (const BlockScaledFile& file : block_scaled_files) {
    check_lines(file.name, file.lines, 5, [&](const Words& words) {
      const auto a = codes_of(words[0], file.element), b = codes_of(words[1], file.element);
      const auto alpha = hex_numbers(words[3], 2), beta = hex_numbers(words[4], 2);
      return to_bits(block_dot({file.element, a, alpha}, {file.element, b, beta},
                               from_bits(hex_number(words[2])), block_scaled_unit(file.kind, file.scale)));
    });
  }
}

/// The lines of a matrix core; a NaN may have any bits.
struct MatrixCoreFile {
  const char* name;
  MatrixCoreGeneration generation;
  FloatFormat input;
  int lines;  ///< lines of the full set
};

using enum MatrixCoreGeneration;
constexpr MatrixCoreFile matrix_core_files[] = {
    {"cdna1_f16.txt", cdna1, fp16, 73},         {"cdna1_bf16.txt", cdna1, bf16, 78},
    {"cdna2_f16.txt", cdna2, fp16, 73},         {"cdna2_bf16.txt", cdna2, bf16, 78},
    {"cdna2_bf16_1k.txt", cdna2_1k, bf16, 78},  {"cdna3_f16.txt", cdna3, fp16, 80},
    {"cdna3_bf16.txt", cdna3, bf16, 86},        {"cdna3_xf32.txt", cdna3, tf32, 86},
    {"cdna3_fp8.txt", cdna3, fp8_e4m3fnuz, 73}, {"cdna3_bf8.txt", cdna3, fp8_e5m2fnuz, 76},
};

TEST_CASE("golden dot products of matrix cores have their bits", "[matrix_core][vectors]") {
  for (const MatrixCoreFile& file : matrix_core_files) {
    check_lines(file.name, file.lines, 3, [&](const Words& words) {
      const FloatFormat stored = file.input == tf32 ? fp32 : file.input;
      const auto a = numbers_of(words[0], stored), b = numbers_of(words[1], stored);
      const float d =
          dot(a, b, from_bits(hex_number(words[2])), matrix_core_step(file.generation, file.input));
      const std::uint32_t expected = hex_number(words[3]);
      return std::isnan(d) && std::isnan(from_bits(expected)) ? expected : to_bits(d);
    });
  }
}

TEST_CASE("golden FP8 sums promoted every 128 terms have their bits", "[block][vectors]") {
  const TensorCoreStep& step = tensor_core_step({hopper}, fp8_e4m3, fp32);
  int lines = 0;
  for_each_line(vectors_folder() / "deepgemm_promotion.txt", [&](const Words& words) {
    const auto a = numbers_of(words[0], fp8_e4m3), b = numbers_of(words[1], fp8_e4m3);
    const auto sa = floats_of(words[2]), sb = floats_of(words[3]);
    INFO("line " << lines + 1);
    CHECK(to_bits(promoted_dot({a, sa}, {b, sb}, 0, step, {})) == hex_number(words[4]));
    CHECK(to_bits(promoted_dot({a, sa}, {b, sb}, 0, step, {.add = ScaledAdd::separate})) ==
          hex_number(words[5]));
    CHECK(to_bits(dot(a, b, 0, step)) == hex_number(words[6]));
    ++lines;
  });
  CHECK((has_full_set() ? lines == 24 : lines > 2));
}

}  // namespace
}  // namespace halfscope::product_vectors_test
