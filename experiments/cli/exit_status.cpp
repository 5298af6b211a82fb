// The one line on stderr.
#include "experiments/cli/exit_status.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace halfscope {

void print_error(const std::string& message) {
  std::string line = message;
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  fmt::print(stderr, "halfscope: {}\n", line);
}

}  // namespace halfscope
