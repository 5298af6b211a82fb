// Sizes of operands, and of the pieces that tasks take of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include <halfscope/core/error.hpp>

namespace halfscope {

/// Elements of one task: some ten microseconds of additions.
constexpr std::int64_t elements_per_task = 16384;

/// Throws InvalidArgument, which names the operation, where the sizes differ.
inline void check_sizes(const char* operation, std::size_t a, std::size_t b) {
  if (a != b) throw InvalidArgument(fmt::format("{}: sizes {} and {} differ", operation, a, b));
}

}  // namespace halfscope
