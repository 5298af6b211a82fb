// Block-scaled products beside the definition of their dot products, on every instruction set.
#include <halfscope/kernel/gemm/gemm.hpp>

#include <cmath>

#include <halfscope/arithmetic/normal.hpp>
#include <halfscope/core/isa.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/kernel/block/quantise.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/formats.hpp"
#include "tests/support/message_of.hpp"
#include "tests/support/restored.hpp"

namespace halfscope::gemm_blocks_test {
namespace {

using enum BlockScaledKind;

/// A unit, and a block format for each of its operands.
struct UnitCase {
  BlockScaledKind kind;
  ScaleFormat scale;
  const char *a, *b;
};
constexpr UnitCase unit_cases[] = {
    {mxf8f6f4, ScaleFormat::e8m0, "mxfp8_e4m3", "mxfp8_e4m3"},
    {mxf8f6f4, ScaleFormat::e8m0, "mxfp8_e5m2", "mxfp8_e4m3"},
    {mxf8f6f4, ScaleFormat::e8m0, "mxfp6_e3m2", "mxfp6_e2m3"},
    {mxf8f6f4, ScaleFormat::e8m0, "mxfp8_e5m2", "mxfp4"},
    {mxf4, ScaleFormat::e8m0, "mxfp4", "mxfp4"},
    {mxf4nvf4, ScaleFormat::e8m0, "block(fp4_e2m1, 1x16, e8m0/floor)", "block(fp4_e2m1, 1x16, e8m0/rceil)"},
    {mxf4nvf4, ScaleFormat::ue4m3, "nvfp4", "nvfp4"},
};

/// How the numbers of a matrix are spread: blocks of one size, of many sizes, with blocks of zeros, far
/// from 1.
enum class Spread { even, uneven, with_zeros, far };

std::vector<float> numbers(const MatrixShape& shape, Spread spread, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(shape.rows * shape.columns));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto block = static_cast<int>(i / 16 % 23);
    values[i] = normal_pair({.seed = seed}, i / 2)[i % 2];
    if (spread == Spread::uneven) values[i] = std::ldexp(values[i], block * 7 % 50 - 25);
    if (spread == Spread::with_zeros && block % 3 == 0) values[i] = 0;
    if (spread == Spread::far) values[i] = std::ldexp(values[i], block % 2 == 0 ? 100 : -90);
  }
  return values;
}

/// Codes without a rule: every element and nearly every scale, NaNs among them where `specials`.
BlockCodes any_codes(const MatrixShape& shape, const BlockFormat& format, bool specials, std::uint64_t seed) {
  const MatrixShape grid = block_grid(shape, format.block);
  BlockCodes codes{shape, std::vector<std::uint8_t>(static_cast<std::size_t>(shape.rows * shape.columns)),
                   std::vector<std::uint32_t>(static_cast<std::size_t>(grid.rows * grid.columns))};
  const RandomStream stream{.seed = seed};
  const FloatFormat& element = format.element.format;
  const auto draw = [&](std::size_t i) { return static_cast<std::uint32_t>(stream.uniform(i) * 0x1p16f); };
  for (std::size_t i = 0; i < codes.elements.size(); ++i) {
    const std::uint32_t code = draw(i) % (1u << code_width(element));
    const bool is_special = !std::isfinite(decode(code, element));
    codes.elements[i] =
        static_cast<std::uint8_t>(is_special && (!specials || draw(i + 7) % 64 != 0) ? 0 : code);
  }
  for (std::size_t i = 0; i < codes.scales.size(); ++i) {
    const std::uint32_t drawn = draw(i + 1000000);
    codes.scales[i] = format.scale() == ScaleFormat::ue4m3 ? drawn % 127 : 127 - 20 + drawn % 40;
    if (specials && drawn % 97 == 0) codes.scales[i] = format.scale() == ScaleFormat::ue4m3 ? 127 : 255;
  }
  return codes;
}

BlockMatrix matrix_of(const BlockCodes& codes, const char* format) {
  return {parse_block_format(format).element.format, codes.shape.rows, codes.shape.columns, codes.elements,
          codes.scales};
}

void check_product(const BlockCodes& left, const BlockCodes& right, const UnitCase& entry) {
  const BlockMatrix a = matrix_of(left, entry.a), b = matrix_of(right, entry.b);
  const BlockScaledUnit& unit = block_scaled_unit(entry.kind, entry.scale);
  std::vector<float> expected;
  for (std::int64_t m = 0; m < a.rows; ++m) {
    for (std::int64_t n = 0; n < b.rows; ++n)
      expected.push_back(block_dot(a.row(m, unit.block), b.row(n, unit.block), 0, unit));
  }
  for (const Isa isa : available_isas()) {
    for (const int threads : {1, 3}) {
      const ForcedIsa forced(isa);
      const Threads in_use(threads);
      std::vector<float> c(expected.size());
      gemm_blocks(a, b, c, unit);
      INFO(entry.a << " x " << entry.b << ", " << a.rows << " x " << a.columns << " x " << b.rows << ", "
                   << name_of(isa));
      CHECK(std::ranges::equal(c, expected, same_bits));
    }
  }
}

constexpr std::int64_t sizes[][3]{{1, 1, 1}, {3, 31, 17}, {5, 64, 16}, {9, 200, 70}, {6, 600, 33}};

TEST_CASE("products of matrices in blocks are their dot products", "[block_dot][gemm]") {
  for (const UnitCase& entry : unit_cases) {
    for (const auto& [rows, depth, columns] : sizes) {
      for (const Spread spread : {Spread::even, Spread::uneven, Spread::with_zeros, Spread::far}) {
        const MatrixShape left{rows, depth}, right{columns, depth};
        const BlockFormat a = parse_block_format(entry.a), b = parse_block_format(entry.b);
        INFO("numbers " << static_cast<int>(spread));
        check_product(quantise_blocks(numbers(left, spread, 1), left, a),
                      quantise_blocks(numbers(right, spread, 2), right, b), entry);
      }
    }
  }
}

TEST_CASE("products of any codes and scales are their dot products", "[block_dot][gemm]") {
  for (const UnitCase& entry : unit_cases) {
    for (const auto& [rows, depth, columns] : sizes) {
      for (const bool specials : {false, true}) {
        const BlockFormat a = parse_block_format(entry.a), b = parse_block_format(entry.b);
        check_product(any_codes({rows, depth}, a, specials, 3), any_codes({columns, depth}, b, specials, 4),
                      entry);
      }
    }
  }
}

TEST_CASE("block-scaled products refuse operands that do not fit", "[block_dot][gemm]") {
  const BlockCodes codes = any_codes({2, 64}, parse_block_format("mxfp8_e4m3"), false, 1);
  const BlockCodes others = any_codes({2, 64}, parse_block_format("nvfp4"), false, 1);
  const BlockMatrix a = matrix_of(codes, "mxfp8_e4m3"), b = matrix_of(others, "nvfp4");
  std::vector<float> c(4), less(3);
  const BlockScaledUnit& mx = block_scaled_unit(mxf8f6f4, ScaleFormat::e8m0);
  const BlockScaledUnit& fp4 = block_scaled_unit(mxf4, ScaleFormat::e8m0);
  const auto says = [&](const BlockMatrix& right, std::span<float> to, const BlockScaledUnit& unit) {
    return message_of<InvalidArgument>([&] { gemm_blocks(a, right, to, unit); });
  };
  check_says(says(a, less, mx), {"(2, 64)", "3 elements"});
  check_says(says(b, c, mx), {"b of (2, 64)", "1 x 32", "128 elements and 4 scales", "8 given"});
  check_says(says(b, c, fp4), {"mxf4", "fp8_e4m3", "fp4_e2m1"});
}

}  // namespace
}  // namespace halfscope::gemm_blocks_test
