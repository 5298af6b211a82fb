// Sizes in words: of memory that cannot be had, of arrays that do not belong together.
#include <halfscope/core/error.hpp>

#include <fmt/format.h>

#include <halfscope/core/detail/equal_sizes.hpp>

namespace halfscope {

OutOfMemory::OutOfMemory(std::size_t bytes)
    : text_(fmt::format("out of memory: an array of {:.1f} MB cannot be had",
                        static_cast<double>(bytes) * 1e-6)) {}

void detail::refuse_sizes(const char* function, std::size_t first, std::size_t second) {
  throw InvalidArgument(
      fmt::format("{}: arrays of {} and {} elements; give as many of both", function, first, second));
}

}  // namespace halfscope
