// Dot products of matrix units against golden lines, which MMA-Sim 2.1.1 and an independent model in exact
// rationals agree on.
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
  int lines;  ///< of the full set
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

}  // namespace
}  // namespace halfscope::product_vectors_test
