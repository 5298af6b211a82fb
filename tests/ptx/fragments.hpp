// Fragments of ldmatrix and mma.sync: which element of a matrix lies in which lane, register and half.
// Source: PTX ISA, "Matrix Fragments for mma.m16n8k8", "... for mma.m16n8k16", and "ldmatrix".
#pragma once

#include <cstddef>

namespace halfscope::ptx {

inline constexpr std::size_t warp_threads = 32;

struct Position {
  std::size_t row = 0;
  std::size_t column = 0;
};

/// Elements of 16 bits lie two in a register. A has 16 rows and 8 or 16 columns: below each other first, then
/// beside each other, blocks of 8 by 8.
[[nodiscard]] constexpr Position position_in_a(std::size_t lane, std::size_t element) {
  const std::size_t reg = element / 2;
  return {lane / 4 + reg % 2 * 8, lane % 4 * 2 + element % 2 + reg / 2 * 8};
}
/// B has 8 or 16 rows and 8 columns.
[[nodiscard]] constexpr Position position_in_b(std::size_t lane, std::size_t element) {
  return {lane % 4 * 2 + element % 2 + element / 2 * 8, lane / 4};
}
/// C and D have 16 rows and 8 columns.
[[nodiscard]] constexpr Position position_in_c(std::size_t lane, std::size_t element) {
  return {lane / 4 + element / 2 * 8, lane % 4 * 2 + element % 2};
}
/// The two elements that a lane gets of an 8 by 8 matrix.
[[nodiscard]] constexpr Position position_in_loaded(std::size_t lane, std::size_t element) {
  return {lane / 4, lane % 4 * 2 + element};
}

}  // namespace halfscope::ptx
