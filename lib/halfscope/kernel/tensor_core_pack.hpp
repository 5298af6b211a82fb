// Operands of a tensor-core product, rounded and decoded; only for kernel/*.cpp, which are compiled once per
// instruction set.
#pragma once

#include <halfscope/kernel/gemm.hpp>
#include <halfscope/kernel/round_lanes.hpp>
#include <halfscope/kernel/vector.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

/// Terms per pass, a multiple of every step's products: b's values and exponents stay in the first-level
/// cache.
constexpr std::size_t depth_block = 128;
constexpr std::size_t strip_rows = 4;

/// What a zero, and an infinity or NaN, count as: the sum with any other exponent is below every product's,
/// or beyond every limit.
constexpr int zero_exponent = -1000, special_exponent = 10000, no_product = -800;
/// Between them, the scaled numbers of a step are normal floats or too small to count; other steps are
/// scalar.
constexpr int lowest_exponent = -90, highest_exponent = 120;

HALFSCOPE_HD std::size_t smaller(std::size_t x, std::size_t y) {
  return x < y ? x : y;
}

/// Operands of one pass, term by term `width` numbers: their values, rounded to the input format, and two
/// terms' exponents in one word, that of the first in its lower half.
struct Packed {
  float* value;
  std::uint32_t* exponents;
};

/// The exponent that a number of the input format has there: subnormal numbers have the smallest.
HALFSCOPE_HD std::int32_t exponent_of(float x, std::int32_t min_exponent) {
  const std::uint32_t magnitude = magnitude_bits(x);
  const auto exponent = static_cast<std::int32_t>(magnitude >> 23) - 127;
  const std::int32_t finite = exponent > min_exponent ? exponent : min_exponent;
  return magnitude == 0 ? zero_exponent : magnitude >= infinity_bits ? special_exponent : finite;
}

/// `count` is a multiple of `lanes`.
void round_values(float* value, std::size_t count, const FloatFormat& format) {
  if (format == FloatFormat{5, 10}) {
    for (std::size_t i = 0; i < count; i += lanes) store(value + i, round_to_fp16(load(value + i)));
    return;
  }
  const RoundingGrid grid = rounding_grid({.format = format});
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) value[i] = round_on_grid<Rounding::nearest_even>(value[i], grid);
}

template <std::size_t width>
void round_and_decode(const Packed& packed, std::size_t terms, const FloatFormat& format) {
  round_values(packed.value, terms * width, format);
  const std::int32_t min_exponent = format.min_exponent();
  for (std::size_t k = 0; k < terms; k += 2) {
    const float* first = packed.value + k * width;
    std::uint32_t* exponents = packed.exponents + k / 2 * width;
#pragma omp simd
    for (std::size_t i = 0; i < width; ++i) {
      const auto low = static_cast<std::uint32_t>(exponent_of(first[i], min_exponent));
      const auto high = static_cast<std::uint32_t>(exponent_of(first[width + i], min_exponent));
      exponents[i] = (low & 0xFFFFu) | (high << 16);
    }
  }
}

/// The terms [first, first + count) of every sum, `padded` with zeros to whole steps.
struct Pass {
  std::size_t first, count, padded;
};

/// Strip after strip of a's rows; rows beyond the last are zeros.
void pack_rows(const GatherMatrix& a, const RowRange& rows, const Pass& pass, const Packed& packed,
               const FloatFormat& format) {
  float* value = packed.value;
  const auto first = static_cast<std::size_t>(rows.first), last = static_cast<std::size_t>(rows.last);
  for (std::size_t m = first; m < last; m += strip_rows) {
    for (std::size_t k = 0; k < pass.padded; ++k) {
      for (std::size_t i = m; i < m + strip_rows; ++i, ++value) {
        const bool inside = k < pass.count && i < last;
        *value = inside ? a.data[a.row[i] + a.column[pass.first + k]] : 0.0f;
      }
    }
  }
  round_and_decode<strip_rows>(packed, static_cast<std::size_t>(value - packed.value) / strip_rows, format);
}

/// A vector's columns of b from `column` on; lanes beyond the last are zeros.
void pack_columns(const DenseMatrix& b, std::size_t column, const Pass& pass, const Packed& packed,
                  const FloatFormat& format) {
  const std::size_t width = smaller(lanes, static_cast<std::size_t>(b.columns) - column);
  std::memset(packed.value, 0, pass.padded * lanes * sizeof(float));
  const float* row = b.data + pass.first * static_cast<std::size_t>(b.columns) + column;
  for (std::size_t k = 0; k < pass.count; ++k, row += b.columns) {
    std::memcpy(packed.value + k * lanes, row, width * sizeof(float));
  }
  round_and_decode<lanes>(packed, pass.padded, format);
}

}  // namespace
}  // namespace halfscope
