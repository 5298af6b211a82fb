// Matrices of 16-bit numbers, and what a tensor-core model makes of them.
#include "tests/support/native_matrices.hpp"

#include <fmt/format.h>

#include <cmath>

#include <halfscope/core/random.hpp>
#include <halfscope/format/encoding.hpp>
#include <halfscope/format/round.hpp>
#include <halfscope/kernel/gemm/gemm.hpp>

namespace halfscope {
namespace {

std::uint16_t code_of(const NativeCase& c, std::uint64_t seed, std::uint64_t index) {
  const RandomStream stream{.seed = seed};
  const FloatFormat format = format_of(c.input);
  if (c.numbers == Numbers::random_codes) {
    // Few are infinite or NaN, or every long sum would be.
    const std::uint32_t bits = stream.bits(index) & 0xFFFFu;
    constexpr std::uint32_t top_exponent_bit = 0x4000;  // both formats have it
    return static_cast<std::uint16_t>(index % 997 == 5 ? bits : bits & ~top_exponent_bit);
  }
  const float value = 2 * stream.uniform(index) - 1;
  return static_cast<std::uint16_t>(encode(round(value, {.format = format}), format));
}

struct Extents {
  std::int64_t rows, columns;
};

NativeMatrix stored(const NativeCase& c, const Extents& extents, MatrixLayout layout, std::uint64_t seed) {
  NativeMatrix matrix;
  const bool plain = layout == MatrixLayout::row_major;
  matrix.lines = plain ? extents.rows : extents.columns;
  matrix.width = plain ? extents.columns : extents.rows;
  matrix.stride = (matrix.width + 7) / 8 * 8 + c.gap;
  // NaN lies between the rows: a kernel that reads it gives itself away.
  matrix.codes.assign(static_cast<std::size_t>(matrix.lines * matrix.stride + 8), 0x7FFF);
  for (std::int64_t i = 0; i < matrix.lines; ++i) {
    for (std::int64_t j = 0; j < matrix.width; ++j) {
      const auto index = static_cast<std::uint64_t>(plain ? i * matrix.width + j : j * matrix.lines + i);
      matrix.codes[static_cast<std::size_t>(i * matrix.stride + j)] = code_of(c, seed, index);
    }
  }
  return matrix;
}

/// Row-major and contiguous, whatever the stored order.
std::vector<float> numbers_of(const NativeCase& c, const Extents& extents, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(extents.rows * extents.columns));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = decode(code_of(c, seed, i), format_of(c.input));
  return values;
}

constexpr std::uint64_t a_seed = 11, b_seed = 12;

float summed_in_fp16(const std::vector<float>& row, const std::vector<float>& column,
                     const TensorCore& core) {
  return dot(row, column, 0.0f, tensor_core_step(core, fp16, fp16));
}

}  // namespace

std::string to_string(const NativeCase& c) {
  return fmt::format("{} {} -> {} -> {}, ({}, {}) {} x ({}, {}) {}, gap {}",
                     c.numbers == Numbers::uniform ? "uniform" : "random", name_of(c.input), name_of(c.sum),
                     name_of(c.output), c.rows, c.depth, name_of(c.a_layout), c.depth, c.columns,
                     name_of(c.b_layout), c.gap);
}

NativeMatrix native_a(const NativeCase& c) {
  return stored(c, {c.rows, c.depth}, c.a_layout, a_seed);
}

NativeMatrix native_b(const NativeCase& c) {
  return stored(c, {c.depth, c.columns}, c.b_layout, b_seed);
}

std::vector<float> modelled_product(const NativeCase& c, const TensorCore& core) {
  const std::vector<float> a = numbers_of(c, {c.rows, c.depth}, a_seed),
                           b = numbers_of(c, {c.depth, c.columns}, b_seed);
  std::vector<float> result(static_cast<std::size_t>(c.rows * c.columns));
  if (c.sum == DType::f32) {
    const auto row = strided_offsets(c.rows, c.depth), column = strided_offsets(c.depth, 1);
    const AccumulateModel model{
        .format = format_of(c.input), .order = AccumulateOrder::tensor_core, .core = core};
    gemm({a.data(), row.values(), column.values()}, {b.data(), c.depth, c.columns}, result, model);
    for (float& x : result) x = round(x, {.format = format_of(c.output)});
    return result;
  }
  const auto depth = static_cast<std::size_t>(c.depth), columns = static_cast<std::size_t>(c.columns);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto first = a.begin() + static_cast<std::ptrdiff_t>(i / columns * depth);
    std::vector<float> row(first, first + c.depth), column(depth);
    for (std::size_t k = 0; k < depth; ++k) column[k] = b[k * columns + i % columns];
    result[i] = round(summed_in_fp16(row, column, core), {.format = fp16});
  }
  return result;
}

template <typename Code>
std::size_t count_different(const std::vector<Code>& codes, std::int64_t stride,
                            const std::vector<float>& expected, const NativeCase& c) {
  std::size_t different = 0;
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.columns; ++j) {
      const Code code = codes[static_cast<std::size_t>(i * stride + j)];
      const float value = round(decode(code, format_of(c.output)), {.format = fp32});  // makes NaNs one
      const float wanted = expected[static_cast<std::size_t>(i * c.columns + j)];
      different += to_bits(value) == to_bits(wanted) ? 0u : 1u;
    }
  }
  return different;
}
template std::size_t count_different(const std::vector<std::uint16_t>&, std::int64_t,
                                     const std::vector<float>&, const NativeCase&);
template std::size_t count_different(const std::vector<std::uint32_t>&, std::int64_t,
                                     const std::vector<float>&, const NativeCase&);

}  // namespace halfscope
