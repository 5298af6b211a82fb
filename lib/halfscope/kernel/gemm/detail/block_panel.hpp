// Operands of block-scaled products, a strip of rows and a panel of columns at a time; only for *_simd.cpp,
// which are compiled once per instruction set.
#pragma once

#include <halfscope/kernel/gemm/detail/gemm_blocks_simd.hpp>
#include <halfscope/kernel/gemm/detail/tensor_core_lanes.hpp>

// Unnamed: compiled differently for every instruction set, so no two translation units may share it.
namespace halfscope {
namespace {

HALFSCOPE_HD std::size_t depth_of(const BlockRows& x) {
  return static_cast<std::size_t>(x.depth);
}
HALFSCOPE_HD std::size_t blocks_of(const BlockRows& x) {
  return static_cast<std::size_t>(x.blocks);
}

/// A vector's rows of b, and what belongs to their blocks and groups: number k of row i is at k * lanes + i.
struct Panel {
  std::size_t first, count;
  float* values;
  float* scales;
  std::int32_t* exponents;
  std::uint32_t* nonzero;
  std::uint32_t* words;  ///< packed exponents, as many as a quarter of the terms in whole chunks
};

/// Sums of a strip's rows with a panel; a negative lane of `beyond` was not computed.
struct StripSums {
  Strip c{};
  Ints beyond[strip_rows] = {};
};

/// Rows of a strip; beyond the last one, that again.
struct StripRows {
  std::size_t first, count;
  [[nodiscard]] HALFSCOPE_HD std::size_t row(std::size_t i) const { return first + smaller(i, count - 1); }
};

/// Exponents of a pair of rows between which every sum is exact until it is cut off to a normal float.
struct PairLimits {
  std::int32_t lowest, highest, spread;
};

}  // namespace
}  // namespace halfscope
