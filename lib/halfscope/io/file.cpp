// POSIX files: every call is checked, and a file takes its name only when its bytes are on the disk.
#include <halfscope/io/file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>

#include <halfscope/core/error.hpp>
#include <halfscope/core/escape.hpp>
#include <halfscope/io/detail/posix_file.hpp>

namespace halfscope {
namespace {

constexpr std::string_view unfinished_prefix = ".halfscope-";

/// A new file beside the one to be written; removed on scope exit unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& folder) : path_(folder), file_(open_new(path_)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  /// 0 or the errno. fsync before rename: a crash must not leave the new name on an empty file.
  [[nodiscard]] int become(const std::filesystem::path& target, std::string_view contents) {
    if (file_.number() < 0) return open_error_;
    if (const int error = write_all(file_, contents)) return error;
    if (const int error = sync_file(file_)) return error;
    if (const int error = file_.close()) return error;
    if (::rename(path_.c_str(), target.c_str()) != 0) return errno;
    path_.clear();
    return 0;
  }

 private:
  /// Extends `path`, a folder, to the file's. The name is short so that any name the file system takes will
  /// do; it is tried again where a killed process with this number left its own behind.
  [[nodiscard]] int open_new(std::filesystem::path& path) {
    static std::atomic<unsigned> counter{0};
    const std::filesystem::path folder = path;
    int file = -1;
    do {
      path = folder / fmt::format("{}{}-{}.tmp", unfinished_prefix, ::getpid(), counter.fetch_add(1));
      file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (file < 0 && errno == EEXIST);
    if (file < 0) {
      open_error_ = errno;
      path.clear();
    }
    return file;
  }

  int open_error_ = 0;
  std::filesystem::path path_;
  Descriptor file_;
};

/// Best effort: the rename itself survives a crash only once the folder is on the disk.
void sync_folder(const std::filesystem::path& folder) {
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.number() >= 0) static_cast<void>(::fsync(descriptor.number()));
}

/// Where `path` leads through symbolic links, to a file or not yet; renaming over a link would replace the
/// link.
std::filesystem::path link_target(std::filesystem::path path) {
  constexpr int most_links = 40;  // as the kernel follows
  std::error_code error;
  for (int i = 0; i < most_links && std::filesystem::is_symlink(path, error); ++i) {
    const auto next = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = path.parent_path() / next;  // next alone where it is absolute
  }
  return path;
}

[[noreturn]] void fail_to_write(const std::filesystem::path& path, std::string_view why) {
  throw RuntimeFailure(fmt::format("cannot write {}: {}", printable(path), why));
}

}  // namespace

void write_file(const std::filesystem::path& path, std::string_view contents) {
  if (path.empty()) fail_to_write(path, "the name is empty; give a file");
  const std::filesystem::path target = link_target(path);
  struct stat status {};
  if (::stat(target.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) fail_to_write(path, "it is a folder; give a file");
    if (!S_ISREG(status.st_mode)) fail_to_write(path, "it is not a regular file");
  } else if (errno != ENOENT) {
    fail_to_write(path, reason(errno));
  }
  const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : ".";
  TemporaryFile temporary(folder);
  if (const int error = temporary.become(target, contents)) fail_to_write(path, reason(error));
  sync_folder(folder);
}

void create_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error && std::filesystem::is_directory(path, error)) return;
  const auto why = error ? error.message() : std::string("a file has that name");
  throw RuntimeFailure(fmt::format("cannot make the folder {}: {}", printable(path), why));
}

std::string printable(const std::filesystem::path& path) {
  return path.empty() ? "''" : escaped(path.string());
}

void remove_unfinished_files(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(unfinished_prefix) && name.ends_with(".tmp"))
      std::filesystem::remove(entry.path(), ignored);
  }
}

}  // namespace halfscope
