// The tensor-core models against results read off GPUs: every set of vectors in the folder that CMake names.
#include <halfscope/arithmetic/tensor_core.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/format/round.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

namespace halfscope::tensor_core_vectors_test {
namespace {

namespace fs = std::filesystem;
using enum TensorCoreGeneration;

struct Gpu {
  std::string_view name;
  TensorCoreGeneration generation;
};
constexpr Gpu gpus[] = {{"V100", volta}, {"A100", ampere}, {"A2", ampere},   {"Ada", ada},
                        {"L40S", ada},   {"H100", hopper}, {"H200", hopper}, {"B200", blackwell}};

struct FolderFormat {
  std::string_view folder;
  FloatFormat format;
};
constexpr FolderFormat folder_formats[] = {
    {"fp16", fp16}, {"bf16", bf16}, {"tf32", tf32}, {"E4M3", fp8_e4m3}, {"E5M2", fp8_e5m2}};

struct VectorSet {
  fs::path folder;
  Gpu gpu;
  FolderFormat input;
  FloatFormat output;

  [[nodiscard]] fs::path file(std::string_view operand, std::string_view format) const {
    std::ostringstream name;
    name << operand << '_' << gpu.name << '_' << format << ".txt";
    return folder / name.str();
  }
};

/// The numbers of each line, their FP32 bits written in base 16 or 2.
std::vector<std::vector<float>> read_lines(const fs::path& path, int base) {
  std::ifstream file(path);
  REQUIRE(file.is_open());
  std::vector<std::vector<float>> lines;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::vector<float> values;
    for (std::string word; words >> word;) {
      values.push_back(from_bits(static_cast<std::uint32_t>(std::stoul(word, nullptr, base))));
    }
    if (!values.empty()) lines.push_back(std::move(values));
  }
  return lines;
}

/// Result of the instruction that the set was made with: FP8 went through mma.sync, except that of
/// Hopper's FP32 results, which is wgmma with c = 0.
float model(const VectorSet& set, std::span<const float> a, std::span<const float> b, float c) {
  const bool fp8 = set.input.folder[0] == 'E';
  if (set.output == fp16) c = round(c, {.format = fp16});
  const TensorCore core{set.gpu.generation};
  if (fp8 && set.gpu.generation == hopper && set.output == fp32) {
    return dot(a, b, 0.0f, tensor_core_step(core, set.input.format, fp32));
  }
  if (fp8 && (set.gpu.generation == hopper || set.gpu.generation == blackwell)) {
    return fp8_step_on_fp16(a, b, c, set.output);
  }
  return dot(a, b, c, tensor_core_step(core, set.input.format, set.output));
}

void check_set(const VectorSet& set, std::string_view result) {
  const auto a = read_lines(set.file("a", set.input.folder), 16);
  const auto b = read_lines(set.file("b", set.input.folder), 16);
  const auto c = read_lines(set.file("c", "fp32"), 2), d = read_lines(set.file("d", result), 2);
  REQUIRE(!d.empty());
  REQUIRE(a.size() == d.size());
  REQUIRE(b.size() == d.size());
  REQUIRE(c.size() == d.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < d.size(); ++i) {
    REQUIRE(a[i].size() == b[i].size());
    if (to_bits(model(set, a[i], b[i], c[i][0])) != to_bits(d[i][0])) ++different;
  }
  INFO(set.folder.string() << " to " << result << ": " << d.size() << " vectors");
  CHECK(different == 0);
}

TEST_CASE("the tensor-core models equal every vector read off a GPU", "[tensor_core][vectors]") {
  const fs::path root = HALFSCOPE_TENSOR_CORE_VECTORS;
  if (root.empty()) {
    WARN("skipped: -DHALFSCOPE_TENSOR_CORE_VECTORS=FOLDER names no folder of vectors");
    return;
  }
  REQUIRE(fs::is_directory(root));
  std::size_t sets = 0;
  for (const Gpu& gpu : gpus) {
    for (const FolderFormat& input : folder_formats) {
      for (const auto& [result, output] : {std::pair{"fp32", fp32}, {"fp16", fp16}}) {
        const VectorSet set{root / gpu.name / input.folder, gpu, input, output};
        if (!fs::exists(set.file("d", result))) continue;
        check_set(set, result);
        ++sets;
      }
    }
  }
  INFO(sets << " sets");
  CHECK(sets > 0);
}

}  // namespace
}  // namespace halfscope::tensor_core_vectors_test
