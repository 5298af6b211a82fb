// Sizes in words.
#include <halfscope/core/error.hpp>

#include <fmt/format.h>

namespace halfscope {

OutOfMemory::OutOfMemory(std::size_t bytes)
    : text_(fmt::format("out of memory: an array of {:.1f} MB cannot be had",
                        static_cast<double>(bytes) * 1e-6)) {}

}  // namespace halfscope
