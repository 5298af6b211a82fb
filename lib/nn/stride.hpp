// The stride of a kernel over images.
#pragma once

#include <cstdint>

namespace halfscope {

/// Pixels from one place of a kernel to the next; one number is that of both axes.
struct Stride {
  std::int64_t rows = 1, columns = 1;

  constexpr Stride() = default;
  constexpr Stride(std::int64_t both) : rows(both), columns(both) {}  // NOLINT: most strides are square
  constexpr Stride(std::int64_t down, std::int64_t across) : rows(down), columns(across) {}
  friend constexpr bool operator==(const Stride&, const Stride&) = default;
};

}  // namespace halfscope
