// The errors that halfscope throws: the request is wrong, the run failed, memory is not enough.
#pragma once

#include <cstddef>
#include <new>
#include <stdexcept>
#include <string>

namespace halfscope {

/// Base of the first two; `what()` is one line that says what is wrong, where, and what would be right.
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

/// Memory that cannot be had; `what()` says how much was asked for.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::size_t bytes);
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

}  // namespace halfscope
