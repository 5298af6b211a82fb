// Errors of the interpreter: text that it does not know, and wrong actions of a kernel.
#pragma once

#include <halfscope/core/error.hpp>

namespace halfscope::ptx {

/// PTX text that the parser does not know; the message names its line.
class ParseError : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

/// A wrong action of a kernel; the message names kernel, block, thread, line and instruction.
class Fault : public RuntimeFailure {
 public:
  using RuntimeFailure::RuntimeFailure;
};

/// The same before the place is known: the machine adds it and throws a Fault.
class Violation : public RuntimeFailure {
 public:
  using RuntimeFailure::RuntimeFailure;
};

}  // namespace halfscope::ptx
