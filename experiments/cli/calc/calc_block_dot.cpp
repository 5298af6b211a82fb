// Two rows as matrices of one row each, multiplied by the definition of the unit.
#include "experiments/cli/calc/calc_block_dot.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include <halfscope/arithmetic/exact.hpp>
#include <halfscope/arithmetic/round_exact.hpp>
#include <halfscope/core/name_list.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/kernel/block/quantise.hpp>

#include "experiments/cli/calc/calc_number.hpp"

namespace halfscope {
namespace {

constexpr std::uint32_t unit_nan = 0x7FFFFFFFu;

BlockCodes row_codes(std::span<const float> values, const BlockFormat& format, const RandomStream& stream) {
  return quantise_blocks(values, {1, std::ssize(values)}, format, stream);
}

/// x without zeros at the end of its significand.
Exact reduced(Exact x) {
  if (x.significand == 0) return {x.sign, 0, 0};
  const int zeros = std::countr_zero(x.significand);
  return {x.sign, x.exponent + zeros, x.significand >> zeros};
}

/// Element k times its block's scale.
Exact number_at(const BlockCodes& codes, std::size_t k, const BlockFormat& format) {
  const auto columns = static_cast<std::size_t>(format.block.columns);
  const float element = decode(codes.elements[k], format.element.format);
  const float scale = decode_scale(codes.scales[k / columns], format.scale());
  return exact_product(reduced(unpack(element)), reduced(unpack(scale)));
}

bool is_exact_product(float a, float b) {
  return double{a} * double{b} == double{a * b};
}

/// Both operands in their formats.
struct BlockRows {
  const BlockDot& dot;
  BlockCodes a, b;

  BlockRows(const DotOperands& x, const BlockDot& how, const RandomStream& stream)
      : dot(how), a(row_codes(x.a, how.a, stream)), b(row_codes(x.b, how.b, stream)) {}

  [[nodiscard]] float sum(float c) const {
    const auto a_scales = scales_of_rows(a, dot.a.block, dot.unit->block);
    const auto b_scales = scales_of_rows(b, dot.b.block, dot.unit->block);
    return block_dot({dot.a.element.format, a.elements, a_scales},
                     {dot.b.element.format, b.elements, b_scales}, c, *dot.unit);
  }
  [[nodiscard]] bool is_exact(float c, float sum) const {
    ExactSum difference;
    difference.add(unpack(c));
    difference.add(unpack(-sum));
    for (std::size_t k = 0; k < a.elements.size(); ++k)
      difference.add(exact_product(number_at(a, k, dot.a), number_at(b, k, dot.b)));
    return difference.is_zero();
  }
};

std::string code_list(const std::vector<std::uint32_t>& codes, int bits) {
  std::string text;
  for (const std::uint32_t code : codes) text += fmt::format(" 0x{:0{}x}", code, (bits + 3) / 4);
  return text;
}

std::string explained_row(std::string_view name, const BlockCodes& codes, const BlockFormat& format) {
  std::string text = fmt::format("  {} in {}:", name, to_string(format));
  if (format.tensor_scale == TensorScale::fp32)
    text += fmt::format(" tensor scale 0x{:08x} = {},", to_bits(codes.tensor.scale), codes.tensor.scale);
  const std::vector<std::uint32_t> elements(codes.elements.begin(), codes.elements.end());
  return text + fmt::format(" scales{}, codes{}\n", code_list(codes.scales, 8),
                            code_list(elements, code_width(format.element.format)));
}

}  // namespace

bool is_block_scaled_unit(std::string_view model) {
  const auto& names = enum_names<BlockScaledKind>;
  return std::find(names.begin(), names.end(), model) != names.end();
}

DotProduct parse_block_dot(const DotOptions& options) {
  if (options.input.empty()) {
    throw InvalidArgument(fmt::format("{0} multiplies blocks; give --input, as --input {1}", options.order,
                                      options.order == "mxf4nvf4" ? "nvfp4" : "mxfp4"));
  }
  if (!options.output.empty() && options.output != "fp32") {
    throw InvalidArgument(
        fmt::format("{} adds up in fp32; leave out --output {}", options.order, options.output));
  }
  const auto names = split_outside_parentheses(options.input, ',');
  if (names.size() > 2) {
    throw InvalidArgument(fmt::format("--input {}: give one format, or two for a and b",
                                      quoted(std::string_view(options.input))));
  }
  const BlockFormat a = parse_block_format(names.front()), b = parse_block_format(names.back());
  const auto kind = parse_enum<BlockScaledKind>("block-scaled unit", options.order);
  return {
      .model = {}, .input = fp32, .output = fp32, .blocks = BlockDot{a, b, &block_scaled_unit(kind, a, b)}};
}

CalcAnswer evaluate_block_dot(Words words, const DotProduct& dot, const RandomStream& stream) {
  const DotOperands x = parse_dot_operands(words, dot);
  const BlockRows rows(x, *dot.blocks, stream);
  const float sum = rows.sum(x.c), a = rows.a.tensor.scale, b = rows.b.tensor.scale;
  const float result = sum * (a * b);
  const bool is_exact = std::isfinite(result) && rows.is_exact(x.c, sum) && is_exact_product(a, b) &&
                        is_exact_product(sum, a * b);
  return {std::isnan(result) ? unit_nan : to_bits(result), dot_flags(x, result, fp32, is_exact)};
}

std::string explained_block_dot(Words words, const DotProduct& dot, const RandomStream& stream) {
  const DotOperands x = parse_dot_operands(words, dot);
  const BlockRows rows(x, *dot.blocks, stream);
  return explained_row("a", rows.a, dot.blocks->a) + explained_row("b", rows.b, dot.blocks->b);
}

}  // namespace halfscope
