// POSIX file calls that retry after EINTR.
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>

#include <halfscope/io/detail/posix_file.hpp>

namespace halfscope {
namespace {

std::atomic<std::uint64_t> all_bytes_written = 0;

}  // namespace

std::string reason(int error) {
  return std::generic_category().message(error);
}

int write_all(const Descriptor& file, std::string_view contents) {
  while (!contents.empty()) {
    const ssize_t count = ::write(file.number(), contents.data(), contents.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return EIO;
    contents.remove_prefix(static_cast<std::size_t>(count));
    all_bytes_written += static_cast<std::uint64_t>(count);
  }
  return 0;
}

std::uint64_t bytes_written() noexcept {
  return all_bytes_written;
}

int sync_file(const Descriptor& file) {
  if (::fsync(file.number()) == 0 || errno == EINVAL || errno == ENOTSUP) return 0;
  return errno;
}

}  // namespace halfscope
