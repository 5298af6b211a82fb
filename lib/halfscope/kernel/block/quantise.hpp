// Brings matrices into block formats and back, and mixes columns by Hadamard's matrix.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <halfscope/core/random.hpp>
#include <halfscope/format/block_format.hpp>

namespace halfscope {

/// Rows and columns of a row-major matrix; blocks run along the columns.
struct MatrixShape {
  std::int64_t rows = 1;
  std::int64_t columns = 0;

  friend constexpr bool operator==(const MatrixShape&, const MatrixShape&) = default;
};

/// Blocks of a matrix, down and across. Blocks at the end of a row or column may be short: they count as if
/// zeros followed.
[[nodiscard]] constexpr MatrixShape block_grid(const MatrixShape& shape, const BlockShape& block) {
  return {(shape.rows + block.rows - 1) / block.rows, (shape.columns + block.columns - 1) / block.columns};
}

/// A matrix in a block format: a code for each element and each block, row-major. An element is worth its
/// number times its block's, times the tensor's.
struct BlockCodes {
  MatrixShape shape{};
  std::vector<std::uint8_t> elements{};
  std::vector<std::uint32_t> scales{};
  TensorFactors tensor{};
};

/// The codes of `values`, split over the threads. Stochastic rounding draws rounding_bits(stream, i) for
/// element i. Throws InvalidArgument unless `values` has as many elements as `shape`.
[[nodiscard]] BlockCodes quantise_blocks(std::span<const float> values, const MatrixShape& shape,
                                         const BlockFormat& format, const RandomStream& stream = {});

/// The scales of `codes`, in blocks of `block`, for each `columns` elements of each row, row by row; the last
/// of a row may have fewer. Throws InvalidArgument unless the blocks' columns are a multiple of `columns`.
[[nodiscard]] std::vector<std::uint32_t> scales_of_rows(const BlockCodes& codes, const BlockShape& block,
                                                        int columns);

/// The numbers of `codes`: element times scale, which is exact but for FP32 scales, times the tensor's scale,
/// each rounded to FP32. Throws InvalidArgument unless `out` has as many elements.
void decode_blocks(const BlockCodes& codes, const BlockFormat& format, std::span<float> out);

/// decode_blocks of quantise_blocks; `in` and `out` may be the same array. Throws InvalidArgument unless both
/// have as many elements as `shape`.
void round_blocks(std::span<const float> in, std::span<float> out, const MatrixShape& shape,
                  const BlockFormat& format, const RandomStream& stream = {});

/// The signs of the transform that TransformerEngine applies before NVFP4.
inline constexpr std::array<float, 16> hadamard_signs{1,  1,  1,  -1, 1,  -1, -1, -1,
                                                      -1, -1, -1, 1,  -1, 1,  -1, -1};

/// In each group of 16 values, x diag(hadamard_signs) H / 4 with Sylvester's H, added up in FP32 in four
/// steps of pairs. Throws InvalidArgument unless the size is a multiple of 16.
void hadamard_16(std::span<float> values);
/// Takes it back: x H / 4 diag(hadamard_signs).
void inverse_hadamard_16(std::span<float> values);

}  // namespace halfscope
