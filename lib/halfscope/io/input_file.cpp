// pread, checked.
#include <halfscope/io/detail/input_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include <halfscope/core/error.hpp>
#include <halfscope/io/detail/parse_error.hpp>
#include <halfscope/io/detail/posix_file.hpp>
#include <halfscope/io/file.hpp>

namespace halfscope {

/// Not blocking: opening a pipe that nobody writes to would wait forever.
InputFile::InputFile(const std::filesystem::path& path)
    : name_(printable(path)), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  const auto fail = [&](std::string_view why) {
    throw InvalidArgument(fmt::format("cannot read {}: {}", name_, why));
  };
  if (descriptor_.number() < 0) fail(reason(errno));
  struct stat status {};
  if (::fstat(descriptor_.number(), &status) != 0) fail(reason(errno));
  if (S_ISDIR(status.st_mode)) fail("it is a folder; give a file");
  if (!S_ISREG(status.st_mode)) fail("it is not a regular file; save its bytes to one first");
  size_ = static_cast<std::uint64_t>(status.st_size);
  static_cast<void>(::posix_fadvise(descriptor_.number(), 0, 0, POSIX_FADV_SEQUENTIAL));  // only a hint
}

std::size_t InputFile::read_some(std::uint64_t offset, std::span<std::byte> to) const {
  for (;;) {
    const ssize_t count = ::pread(descriptor_.number(), to.data(), to.size(), static_cast<off_t>(offset));
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EINTR) continue;
    throw RuntimeFailure(fmt::format("cannot read {}: byte {}: {}", name_, offset, reason(errno)));
  }
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const std::size_t count = read_some(offset, to);
    if (count == 0)
      refuse(name_, fmt::format("ends at byte {}; it had {} when it was opened", offset, size_));
    offset += count;
    to = to.subspan(count);
  }
}

}  // namespace halfscope
