// The one line on stderr.
#include "experiments/cli/exit_status.hpp"

#include <fmt/format.h>

#include <cstdio>

#include <halfscope/core/escape.hpp>

namespace halfscope {

void print_error(const std::string& message) {
  fmt::print(stderr, "halfscope: {}\n", escaped(message));
}

}  // namespace halfscope
