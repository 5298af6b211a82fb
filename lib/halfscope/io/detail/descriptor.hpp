// A POSIX file descriptor that closes itself.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace halfscope {

/// Owns an open file, or nothing where `number` is negative.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  [[nodiscard]] int number() const { return number_; }
  /// The number, which is the caller's to close from now on.
  [[nodiscard]] int release() { return std::exchange(number_, -1); }
  /// 0 or the errno, which the destructor could not report.
  [[nodiscard]] int close() {
    const int status = ::close(std::exchange(number_, -1));
    return status == 0 ? 0 : errno;
  }

 private:
  int number_;
};

}  // namespace halfscope
