// Printing of floats for failing tests.
#include "tests/support/formats.hpp"

#include <fmt/format.h>

namespace halfscope {

std::string describe(float x) {
  return fmt::format("{} [{:#010x}]", x, to_bits(x));
}

}  // namespace halfscope
