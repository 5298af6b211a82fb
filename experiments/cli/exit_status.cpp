// Prints an error as one line on stderr.
#include "experiments/cli/exit_status.hpp"

#include <fmt/format.h>

#include <halfscope/core/escape.hpp>
#include <halfscope/core/stderr_text.hpp>

namespace halfscope {

void print_error(const std::string& message) {
  print_stderr(fmt::format("halfscope: {}\n", escaped(message)));
}

}  // namespace halfscope
