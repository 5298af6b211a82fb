// The check that arrays which belong together have one size.
#pragma once

#include <cstddef>

namespace halfscope::detail {

/// Throws InvalidArgument, whose message begins with the name of the function, for two sizes that differ.
[[noreturn]] void refuse_sizes(const char* function, std::size_t first, std::size_t second);

/// Public functions of two arrays call it before their loops, which stay total and noexcept.
inline void check_equal_sizes(const char* function, std::size_t first, std::size_t second) {
  if (first != second) refuse_sizes(function, first, second);
}

}  // namespace halfscope::detail
