// Settings of the whole process that a test changes and that are put back when the test ends, also by a
// failure.
#pragma once

#include <stdlib.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <halfscope/core/parallel.hpp>

namespace halfscope {

/// An environment variable with `value` for the life of the object.
class EnvironmentVariable {
 public:
  EnvironmentVariable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = ::getenv(name_.c_str())) before_ = before;
    if (::setenv(name_.c_str(), value.c_str(), 1) != 0) throw std::runtime_error("cannot set " + name_);
  }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;
  ~EnvironmentVariable() {
    if (before_) {
      ::setenv(name_.c_str(), before_->c_str(), 1);
    } else {
      ::unsetenv(name_.c_str());
    }
  }

 private:
  std::string name_;
  std::optional<std::string> before_;
};

/// `count` threads for the life of the object.
class Threads {
 public:
  explicit Threads(int count) : before_(thread_count()) { set_thread_count(count); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads() { set_thread_count(before_); }

 private:
  int before_;
};

/// `call()` on `count` threads.
template <typename Call>
decltype(auto) with_threads(int count, Call&& call) {
  const Threads threads(count);
  return std::forward<Call>(call)();
}

}  // namespace halfscope
