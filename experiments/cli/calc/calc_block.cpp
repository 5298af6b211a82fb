// Blocks of a line each; a tensor's larger magnitude stands in a block of its own beside them.
#include "experiments/cli/calc/calc_block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <halfscope/format/encoding.hpp>
#include <halfscope/kernel/block/quantise.hpp>

namespace halfscope {
namespace {

using Words = std::span<const std::string_view>;

/// A block on its own: its values, and what became of them.
struct OneBlock {
  std::vector<float> values{};
  std::vector<std::uint32_t> codes{};
  std::vector<float> numbers{};  ///< numbers of codes and scales
  std::uint32_t scale = 0;
  float tensor_scale = 1;
};

MatrixShape shape_of(std::size_t count, const BlockFormat& format) {
  const auto values = static_cast<std::int64_t>(count);
  const auto [rows, columns] = format.block;
  if (values >= 1 && values <= columns) return {1, values};
  if (values > 0 && values <= format.block.size() && values % columns == 0)
    return {values / columns, columns};
  throw InvalidArgument(
      rows == 1 ? fmt::format("a block of {} has 1 to {} values, {} given", to_string(format), columns, count)
                : fmt::format("a block of {} has 1 to {} values or up to {} whole rows of them, {} given",
                              to_string(format), columns, rows, count));
}

/// The rows of `values`, each with one more element: the tensor's largest magnitude in a block that follows.
std::vector<float> beside_tensor(std::span<const float> values, const MatrixShape& shape,
                                 const BlockShape& block, float tensor_amax) {
  const auto stride = static_cast<std::size_t>(block.columns) + 1;
  std::vector<float> matrix(static_cast<std::size_t>(shape.rows) * stride, 0.0f);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto columns = static_cast<std::size_t>(shape.columns);
    matrix[i / columns * stride + i % columns] = values[i];
  }
  matrix[stride - 1] = tensor_amax;
  return matrix;
}

OneBlock quantise(const BlockRequest& request, Words words, std::uint64_t index) {
  const MatrixShape shape = shape_of(words.size(), request.format);
  OneBlock block;
  float amax = 0;
  for (const std::string_view word : words) {
    block.values.push_back(parse_operand(word, request.from));
    amax = std::fmax(amax, std::abs(block.values.back()));
  }
  if (request.tensor_amax && *request.tensor_amax < amax) {
    throw InvalidArgument(fmt::format("--tensor-amax {} is less than {}, the largest magnitude of the block",
                                      *request.tensor_amax, amax));
  }
  const std::vector<float> matrix =
      beside_tensor(block.values, shape, request.format.block, request.tensor_amax.value_or(0));
  const MatrixShape wide{shape.rows, request.format.block.columns + 1};
  const BlockCodes codes = quantise_blocks(matrix, wide, request.format,
                                           {.seed = request.seed, .step = static_cast<std::uint32_t>(index)});
  std::vector<float> numbers(matrix.size());
  decode_blocks(codes, request.format, numbers);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    for (std::int64_t column = 0; column < shape.columns; ++column) {
      const auto at = static_cast<std::size_t>(row * wide.columns + column);
      block.codes.push_back(codes.elements[at]);
      block.numbers.push_back(numbers[at]);
    }
  }
  block.scale = codes.scales.front();
  block.tensor_scale = codes.tensor.scale;
  return block;
}

std::string hex(std::uint32_t code, int bits) {
  return fmt::format("0x{:0{}x}", code, (bits + 3) / 4);
}

int scale_bits(const BlockFormat& format) {
  return format.scale() == ScaleFormat::fp32 ? 32 : 8;
}

bool has_tensor_scale(const BlockFormat& format) {
  return format.tensor_scale == TensorScale::fp32;
}

}  // namespace

float parse_tensor_amax(std::string_view text, const BlockFormat& format) {
  if (!has_tensor_scale(format)) {
    throw InvalidArgument(
        fmt::format("--tensor-amax: {} has no scale of the tensor; leave it out", to_string(format)));
  }
  const float amax = parse_operand(text, fp32);
  if (amax >= 0 && std::isfinite(amax)) return amax;
  throw InvalidArgument(
      fmt::format("--tensor-amax {}: give the largest magnitude of a tensor", quoted(text)));
}

void append_block(std::string& out, const BlockRequest& request, Words words, std::uint64_t index) {
  const OneBlock block = quantise(request, words, index);
  if (has_tensor_scale(request.format)) out += hex(to_bits(block.tensor_scale), 32) + ' ';
  out += hex(block.scale, scale_bits(request.format));
  for (const std::uint32_t code : block.codes)
    out += ' ' + hex(code, code_width(request.format.element.format));
  out += '\n';
}

std::string explained_block(const BlockRequest& request, Words words, std::uint64_t index) {
  const BlockFormat& format = request.format;
  const OneBlock block = quantise(request, words, index);
  std::string text;
  if (has_tensor_scale(format))
    text += fmt::format("tensor scale {} = {}\n", hex(to_bits(block.tensor_scale), 32), block.tensor_scale);
  text += fmt::format("scale {} = {}\n", hex(block.scale, scale_bits(format)),
                      decode_scale(block.scale, format.scale()));
  for (std::size_t i = 0; i < words.size(); ++i) {
    const float element = decode(block.codes[i], format.element.format);
    text += fmt::format("  {} -> {} = {}, which stands for {}\n", words[i],
                        hex(block.codes[i], code_width(format.element.format)), element, block.numbers[i]);
  }
  return text;
}

}  // namespace halfscope
