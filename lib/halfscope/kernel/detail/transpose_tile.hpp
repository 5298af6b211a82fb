// Transposition of a tile of floats, in blocks of four by four.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <halfscope/kernel/detail/quads.hpp>

// Unnamed, as the squares are.
namespace halfscope {
namespace {

/// Both sides of a tile stay in the first-level cache.
constexpr std::int64_t transposed_tile = 32;

/// A matrix's corner, and the numbers between two of its rows.
template <typename Number>
struct Corner {
  Number* first;
  std::int64_t stride;

  [[nodiscard]] Number* at(std::int64_t row, std::int64_t column) const {
    return first + row * stride + column;
  }
};

inline void transpose_square(const Corner<const float>& from, const Corner<float>& to) {
  Quads square;
  for (std::int64_t i = 0; i < 4; ++i) std::memcpy(&square.row[i], from.at(i, 0), sizeof(Quad));
  square = transposed(square);
  for (std::int64_t i = 0; i < 4; ++i) std::memcpy(to.at(i, 0), &square.row[i], sizeof(Quad));
}

/// from (rows, columns), at most `transposed_tile` of each; to (columns, rows).
inline void transpose_tile(const Corner<const float>& from, const Corner<float>& to, std::int64_t rows,
                           std::int64_t columns) {
  for (std::int64_t c = 0; c < columns; c += 4) {
    for (std::int64_t r = 0; r < rows; r += 4) {
      if (r + 4 <= rows && c + 4 <= columns) {
        transpose_square({from.at(r, c), from.stride}, {to.at(c, r), to.stride});
        continue;
      }
      for (std::int64_t i = r; i < std::min(rows, r + 4); ++i) {
        for (std::int64_t j = c; j < std::min(columns, c + 4); ++j) *to.at(j, i) = *from.at(i, j);
      }
    }
  }
}

}  // namespace
}  // namespace halfscope
