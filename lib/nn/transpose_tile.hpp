// Transposition of a tile of floats, in blocks of four by four.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace halfscope {

/// Both sides of a tile stay in the first-level cache.
constexpr std::int64_t transposed_tile = 32;

/// Four numbers, which the baseline of every processor shuffles.
using Four [[gnu::vector_size(16)]] = float;

/// A matrix's corner, and the numbers between two of its rows.
template <typename Number>
struct Corner {
  Number* first;
  std::int64_t stride;

  [[nodiscard]] Number* at(std::int64_t row, std::int64_t column) const {
    return first + row * stride + column;
  }
};

inline Four load_four(const float* from) {
  Four x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

inline void transpose_four_by_four(const Corner<const float>& from, const Corner<float>& to) {
  const Four a = load_four(from.at(0, 0)), b = load_four(from.at(1, 0)), c = load_four(from.at(2, 0)),
             d = load_four(from.at(3, 0));
  const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
             ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7),
             cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5),
             cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const std::array<Four, 4> columns{__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
                                    __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                                    __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                                    __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
  for (std::int64_t i = 0; i < 4; ++i)
    std::memcpy(to.at(i, 0), &columns[static_cast<std::size_t>(i)], sizeof(Four));
}

/// from (rows, columns), at most `transposed_tile` of each; to (columns, rows).
inline void transpose_tile(const Corner<const float>& from, const Corner<float>& to, std::int64_t rows,
                           std::int64_t columns) {
  for (std::int64_t c = 0; c < columns; c += 4) {
    for (std::int64_t r = 0; r < rows; r += 4) {
      if (r + 4 <= rows && c + 4 <= columns) {
        transpose_four_by_four({from.at(r, c), from.stride}, {to.at(c, r), to.stride});
        continue;
      }
      for (std::int64_t i = r; i < std::min(rows, r + 4); ++i) {
        for (std::int64_t j = c; j < std::min(columns, c + 4); ++j) *to.at(j, i) = *from.at(i, j);
      }
    }
  }
}

}  // namespace halfscope
