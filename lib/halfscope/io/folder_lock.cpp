// flock, which also holds between threads: each opens the file for itself.
#include <halfscope/io/folder_lock.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <string>

#include <halfscope/core/error.hpp>
#include <halfscope/core/stderr_text.hpp>
#include <halfscope/io/detail/posix_file.hpp>
#include <halfscope/io/file.hpp>

namespace halfscope {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unknown host";
}

/// "process 4711 on node3", as the holder wrote it; in other words where it has not yet.
std::string holder_of(const Descriptor& file) {
  std::array<char, 400> text{};
  const ssize_t count = ::pread(file.number(), text.data(), text.size(), 0);
  const std::string line(text.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  const std::string holder = line.substr(0, line.find('\n'));
  return holder.empty() ? "another process" : printable(holder);
}

void note_missing_locks(const std::filesystem::path& path) {
  static std::atomic<bool> noted = false;
  if (noted.exchange(true)) return;
  print_stderr(fmt::format("note: {}: its file system has no locks; let one process at a time write there\n",
                           printable(path.parent_path())));
}

/// Whether `path` still leads to the open file: its last holder removed it, or another's took its place.
bool leads_to(const std::filesystem::path& path, const Descriptor& file) {
  struct stat named {
  }, open{};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(file.number(), &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

/// The file, locked.
Descriptor take_lock(const std::filesystem::path& path, std::string_view conflict) {
  constexpr int most_tries = 100;  // a file system may number its files anew each time
  for (int i = 1;; ++i) {
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (file.number() < 0)
      throw RuntimeFailure(fmt::format("cannot write {}: {}", printable(path), reason(errno)));
    while (::flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) {
        throw RuntimeFailure(
            fmt::format("{}: {} {}", printable(path.parent_path()), holder_of(file), conflict));
      }
      note_missing_locks(path);
      return file;
    }
    if (leads_to(path, file) || i == most_tries) return file;
  }
}

/// For the message of whoever finds the folder locked; a full disk is no reason not to train.
void sign(const Descriptor& file) {
  if (::ftruncate(file.number(), 0) != 0) return;
  static_cast<void>(write_all(file, fmt::format("process {} on {}\n", ::getpid(), host_name())));
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder, std::string_view conflict)
    : path_(folder / "lock"), file_(-1) {
  create_folder(folder);
  Descriptor file = take_lock(path_, conflict);
  sign(file);
  file_ = file.release();
}

/// Removed while it is locked: whoever has opened this file looks whether it still has its name.
FolderLock::~FolderLock() {
  ::unlink(path_.c_str());
  ::close(file_);
}

}  // namespace halfscope
