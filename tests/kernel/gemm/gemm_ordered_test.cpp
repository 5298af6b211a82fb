// The ordered product's kernel, run on simulated CUDA blocks, equals the CPU's `gemm` with the tensor-core
// model bit for bit: every index, copy, fragment and step of it is checked without a GPU.
#include <halfscope/kernel/gemm/gemm_ordered.hpp>

#include "tests/kernel/gemm/simulated_block.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/native_matrices.hpp"

namespace halfscope::gemm_ordered_test {
namespace {

using enum TensorCoreGeneration;
using enum MatrixLayout;
using ordered::Along;

struct Setting {
  NativeCase product;
  TensorCoreGeneration generation = hopper;
  CopyTime copy_time = CopyTime::when_issued;
};

template <typename Visit>
void with_layouts(const NativeCase& c, const Visit& visit) {
  const auto with = [&]<Along a, Along b>() {
    if (c.input == DType::bf16)
      return visit.template operator()<ordered::Variant<DType::bf16, DType::f32, a, b>>();
    if (c.sum == DType::f16)
      return visit.template operator()<ordered::Variant<DType::f16, DType::f16, a, b>>();
    visit.template operator()<ordered::Variant<DType::f16, DType::f32, a, b>>();
  };
  if (c.a_layout == row_major && c.b_layout == row_major)
    return with.template operator()<Along::depth, Along::across>();
  if (c.a_layout == row_major) return with.template operator()<Along::depth, Along::depth>();
  if (c.b_layout == row_major) return with.template operator()<Along::across, Along::across>();
  with.template operator()<Along::across, Along::depth>();
}

ordered::Factor factor_of(const NativeMatrix& matrix, std::int64_t extent) {
  return {matrix.codes.data(), matrix.stride, static_cast<int>(extent), matrix.stride % 8 == 0};
}

/// The product by simulated blocks, with a guard element after every row of c and after the last.
template <typename Code>
void check_simulated(const Setting& setting) {
  const NativeCase& c = setting.product;
  const NativeMatrix a = native_a(c), b = native_b(c);
  const std::int64_t stride = c.columns + 1 + c.gap;
  constexpr Code sentinel = 0x5A5A;
  std::vector<Code> out(static_cast<std::size_t>(c.rows * stride + 2), sentinel);
  const ordered::Problem problem{
      factor_of(a, c.rows), factor_of(b, c.columns), static_cast<int>(c.depth), out.data(), stride,
      stride % 2 == 0};
  const TensorCoreStep& step = tensor_core_step({setting.generation}, format_of(c.input), format_of(c.sum));
  with_layouts(c, [&]<typename V>() { run_simulated<V>(problem, c.output, step, setting.copy_time); });
  INFO(to_string(c) << " on " << name_of(setting.generation));
  CHECK(count_different(out, stride, modelled_product(c, {setting.generation}), c) == 0);
  std::size_t touched = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto column = static_cast<std::int64_t>(i) % stride, row = static_cast<std::int64_t>(i) / stride;
    if ((column >= c.columns || row >= c.rows) && out[i] != sentinel) ++touched;
  }
  CHECK(touched == 0);
}

void check(const Setting& setting) {
  if (setting.product.output == DType::f32) return check_simulated<std::uint32_t>(setting);
  check_simulated<std::uint16_t>(setting);
}

TEST_CASE("the ordered kernel is the model for every layout and type", "[gemm][ordered]") {
  constexpr auto f16 = DType::f16, b16 = DType::bf16, f32 = DType::f32;
  struct Types {
    DType input, sum, output;
  };
  for (const Types& types : {Types{f16, f32, f32}, Types{f16, f32, f16}, Types{b16, f32, b16},
                             Types{b16, f32, f32}, Types{f16, f16, f16}}) {
    for (const MatrixLayout a : {row_major, transposed}) {
      for (const MatrixLayout b : {row_major, transposed}) {
        NativeCase c{33, 41, 19, a, b, types.input, types.sum, types.output};
        const bool same = a == b;
        c.numbers = same ? Numbers::uniform : Numbers::random_codes;
        check({c, hopper, same ? CopyTime::when_issued : CopyTime::when_waited_for});
      }
    }
  }
}

TEST_CASE("the ordered kernel is the model for every rest of the terms", "[gemm][ordered]") {
  for (const std::int64_t depth : {0, 1, 8, 9, 16, 17, 24, 25, 32, 33, 96, 97}) {
    // Every rest meets two of the generations, whose steps differ; threads that wait for each other are slow.
    constexpr TensorCoreGeneration generations[] = {turing, ampere, hopper};
    NativeCase c{5, depth, 9, row_major, row_major};
    c.numbers = Numbers::random_codes;
    check({c, generations[depth % 3]});
    c.sum = c.output = DType::f16;
    check({c, generations[(depth + 1) % 3], CopyTime::when_waited_for});
  }
}

TEST_CASE("the ordered kernel is the model for rows of any length and blocks at every edge",
          "[gemm][ordered]") {
  for (const MatrixLayout a : {row_major, transposed}) {
    for (const MatrixLayout b : {row_major, transposed}) {
      check({NativeCase{1, 5, 1, a, b, DType::f16, DType::f32, DType::f16, 1}});
      check({NativeCase{31, 35, 31, a, b, DType::f16, DType::f32, DType::f16, 3}});
    }
  }
  check({NativeCase{129, 70, 130, transposed, transposed}, hopper, CopyTime::when_waited_for});
  check({NativeCase{257, 37, 259, row_major, row_major}});
  check({NativeCase{0, 5, 3, row_major, row_major}});
}

TEST_CASE("a rest of at most 8 products takes one step, as the model does", "[gemm][ordered]") {
  // A second step, of zeros alone, changes no sum of the model: the terms are counted.
  const std::vector<std::uint16_t> ones(32, 0x3C00);
  const TensorCoreStep& step = tensor_core_step({ampere}, fp16, fp16);
  const auto terms_of = [&](int depth) {
    std::uint16_t c = 0x5A5A;
    const ordered::Problem problem{
        {ones.data(), depth, 1, false}, {ones.data(), 1, 1, false}, depth, &c, 1, false};
    const std::int64_t terms =
        run_simulated<ordered::Variant<DType::f16, DType::f16, Along::depth, Along::across>>(
            problem, DType::f16, step, CopyTime::when_issued);
    CHECK(decode(c, fp16) == static_cast<float>(depth));
    return terms;
  };
  const std::int64_t short_step = terms_of(1);
  REQUIRE(short_step > 0);
  CHECK(terms_of(8) == short_step);
  CHECK(terms_of(9) == 2 * short_step);
  CHECK(terms_of(16) == 2 * short_step);
  CHECK(terms_of(17) == 3 * short_step);
}

TEST_CASE("every tile is some block's, once", "[gemm][ordered]") {
  for (const int rows : {1, 128, 129, 1024, 1025, 2500}) {
    for (const int columns : {1, 256, 900}) {
      const std::int64_t count = ordered::block_count(rows, columns);
      std::vector<int> seen(static_cast<std::size_t>(count));
      const int across = (columns + 127) / 128;
      for (std::int64_t block = 0; block < count; ++block) {
        const ordered::Origin at = ordered::block_origin(block, rows, columns);
        REQUIRE(at.row < rows);
        REQUIRE(at.column < columns);
        const std::int64_t tile = std::int64_t{at.row / 128} * across + at.column / 128;
        ++seen.at(static_cast<std::size_t>(tile));
      }
      CHECK(seen == std::vector<int>(seen.size(), 1));
    }
  }
}

TEST_CASE("the GPU's capability names its model", "[gemm][ordered]") {
  CHECK(tensor_core_of_capability({7, 5}).generation == turing);
  CHECK(tensor_core_of_capability({8, 0}).generation == ampere);
  CHECK(tensor_core_of_capability({8, 6}).generation == ampere);
  CHECK(tensor_core_of_capability({8, 9}).generation == ada);
  CHECK(tensor_core_of_capability({9, 0}).generation == hopper);
  CHECK(tensor_core_of_capability({10, 0}).generation == blackwell);
  CHECK(tensor_core_of_capability({12, 0}).generation == blackwell);
  check_says(message_of<InvalidArgument>([] { (void)tensor_core_of_capability({7, 0}); }), {"7.0", "7.5"});
}

DeviceProduct sound_product() {
  static std::uint16_t memory[64];
  return {
      .rows = 4, .depth = 8, .columns = 2, .a = {memory, 8}, .b = {memory, 2}, .c = memory, .c_stride = 2};
}

TEST_CASE("products that cannot be are refused with what is wrong", "[gemm][ordered]") {
  CHECK_NOTHROW(check_ordered_product(sound_product()));
  const auto refusal = [](void (*change)(DeviceProduct&)) {
    return message_of<InvalidArgument>([&] {
      DeviceProduct product = sound_product();
      change(product);
      check_ordered_product(product);
    });
  };
  check_says(refusal([](DeviceProduct& p) { p.rows = -1; }), {"gemm_ordered", "(-1, 8)", "extents"});
  check_says(refusal([](DeviceProduct& p) { p.depth = std::int64_t{1} << 31; }), {"extents"});
  check_says(refusal([](DeviceProduct& p) { p.a.stride = 7; }), {"a has rows of 8 elements only 7 apart"});
  check_says(refusal([](DeviceProduct& p) { p.b.layout = transposed; }), {"b has rows of 8", "2 apart"});
  check_says(refusal([](DeviceProduct& p) { p.c_stride = 1; }), {"c has rows of 2 elements only 1 apart"});
  check_says(refusal([](DeviceProduct& p) { p.c = nullptr; }), {"c has no memory"});
  check_says(refusal([](DeviceProduct& p) { p.sum = DType::f16; }), {"f16 x f16 -> f16 -> f32"});
  check_says(refusal([](DeviceProduct& p) { p.input = p.sum = p.output = DType::f32; }),
             {"tensor cores multiply f16 or bf16", "gemm_cublas"});
}

}  // namespace
}  // namespace halfscope::gemm_ordered_test
