// How the program ends.
#pragma once

#include <string>

namespace halfscope {

enum ExitStatus { done = 0, found_something = 1, wrong_request = 2, failed_run = 3 };

/// Writes `message` as one line to stderr, words of others in it escaped.
void print_error(const std::string& message);

/// Thrown by a command that has said all that there is to say, and ends the program with `status`.
struct Exit {
  ExitStatus status = done;
};

}  // namespace halfscope
