// The loops of block-scaled products, compiled once per instruction set.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <halfscope/arithmetic/block_dot.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

/// An operand's rows as numbers. Terms are padded with zeros to whole steps of the largest unit; a block of
/// zeros has the scale of the one before it, so that exponents tell of products alone.
struct BlockRows {
  static constexpr std::int64_t padded_terms = 64;

  FloatFormat element;
  std::int64_t rows = 0, depth = 0;     ///< depth: terms of a row, padded
  std::int64_t blocks = 0;              ///< blocks of a row
  std::unique_ptr<float[]> values;      ///< (rows, depth)
  std::vector<float> scales;            ///< (rows, blocks)
  std::vector<std::int32_t> exponents;  ///< scales' exponents; (rows, blocks)
  std::vector<std::uint32_t>
      nonzero;  ///< whether any, a bit per element of a group of 16; (rows, depth / 16)
  std::vector<std::int32_t> least, largest;  ///< exponents of each row
  std::vector<std::uint8_t> special;         ///< whether a row has an infinity or a NaN, or a NaN scale
};

struct BlockColumns {
  std::int64_t first, last;
};

/// Writes the numbers of `count` codes and zeros up to a multiple of 16, and for each 16 of them a bit for
/// every one that is not zero. Whether any is infinite or NaN.
template <Isa isa>
bool decode_elements_isa(const std::uint8_t* codes, std::size_t count, const FloatFormat& format,
                         float* values, std::uint32_t* nonzero);
template <>
bool decode_elements_isa<Isa::baseline>(const std::uint8_t*, std::size_t, const FloatFormat&, float*,
                                        std::uint32_t*);
template <>
bool decode_elements_isa<Isa::avx2>(const std::uint8_t*, std::size_t, const FloatFormat&, float*,
                                    std::uint32_t*);
template <>
bool decode_elements_isa<Isa::avx512>(const std::uint8_t*, std::size_t, const FloatFormat&, float*,
                                      std::uint32_t*);

/// Columns of c = a b^T in one thread. An element that the loops do not compute is NaN: one of special rows,
/// or of exponents that are far from each other or from 0. Whether there is one.
template <Isa isa>
bool gemm_blocks_isa(const BlockRows& a, const BlockRows& b, const BlockScaledUnit& unit,
                     const BlockColumns& columns, float* c);
template <>
bool gemm_blocks_isa<Isa::baseline>(const BlockRows&, const BlockRows&, const BlockScaledUnit&,
                                    const BlockColumns&, float*);
template <>
bool gemm_blocks_isa<Isa::avx2>(const BlockRows&, const BlockRows&, const BlockScaledUnit&,
                                const BlockColumns&, float*);
template <>
bool gemm_blocks_isa<Isa::avx512>(const BlockRows&, const BlockRows&, const BlockScaledUnit&,
                                  const BlockColumns&, float*);

}  // namespace halfscope
