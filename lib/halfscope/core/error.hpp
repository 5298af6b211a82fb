// The two errors that halfscope throws: the request is wrong, or the run failed.
#pragma once

#include <stdexcept>
#include <string>

namespace halfscope {

/// Base of both; `what()` is one line that says what is wrong, where, and what would be right.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The request cannot be right: unknown name, value out of range, malformed file. Exit status 2.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// The request was right but could not be carried out: disk full, device lost. Exit status 3.
class RuntimeFailure : public Error {
 public:
  using Error::Error;
};

}  // namespace halfscope
