// Appending, cutting and reading over POSIX files.
#include <halfscope/io/growing_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string>

#include <halfscope/core/error.hpp>
#include <halfscope/io/detail/input_file.hpp>
#include <halfscope/io/detail/posix_file.hpp>
#include <halfscope/io/file.hpp>

namespace halfscope {
namespace {

[[noreturn]] void fail_to_write(const std::filesystem::path& path, int error) {
  throw RuntimeFailure(fmt::format("cannot write {}: {}", printable(path), reason(error)));
}

/// The bytes on the disk; 0 or the errno.
int append(const Descriptor& file, std::string_view contents) {
  if (const int error = write_all(file, contents)) return error;
  return sync_file(file);
}

/// Lines of a file that arrives in pieces.
class LineSplitter {
 public:
  explicit LineSplitter(const LineFunction& take) : take_(take) {}

  void add(std::string_view piece) {
    for (std::size_t end = piece.find('\n'); end != std::string_view::npos; end = piece.find('\n')) {
      if (begun_.empty()) {
        take_(piece.substr(0, end), ++number_);
      } else {
        take_(begun_.append(piece.substr(0, end)), ++number_);
        begun_.clear();
      }
      piece.remove_prefix(end + 1);
    }
    begun_ += piece;
  }

 private:
  const LineFunction& take_;
  std::string begun_{};
  std::size_t number_ = 0;
};

}  // namespace

void FileExtent::add(std::string_view contents) {
  crc32 = static_cast<std::uint32_t>(
      ::crc32_z(crc32, reinterpret_cast<const Bytef*>(contents.data()), contents.size()));
  bytes += contents.size();
}

void append_to_file(const std::filesystem::path& path, std::string_view contents) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  if (file.number() < 0) fail_to_write(path, errno);
  struct stat before {};
  if (::fstat(file.number(), &before) != 0) fail_to_write(path, errno);
  if (!S_ISREG(before.st_mode)) fail_to_write(path, EINVAL);
  int error = append(file, contents);
  if (error != 0) static_cast<void>(::ftruncate(file.number(), before.st_size));
  if (error == 0) error = file.close();
  if (error != 0) fail_to_write(path, error);
}

void cut_file(const std::filesystem::path& path, std::uint64_t bytes) {
  if (::truncate(path.c_str(), static_cast<off_t>(bytes)) == 0) return;
  if (errno == ENOENT && bytes == 0) return;
  fail_to_write(path, errno);
}

FileExtent read_lines(const std::filesystem::path& path, const LineFunction& take, std::uint64_t most) {
  constexpr std::uint64_t piece_bytes = 1 << 18;
  const InputFile file(path);
  std::string buffer(piece_bytes, '\0');
  FileExtent read;
  LineSplitter lines(take);
  while (read.bytes < most) {
    const auto wanted = static_cast<std::size_t>(std::min(piece_bytes, most - read.bytes));
    const std::size_t count =
        file.read_some(read.bytes, std::as_writable_bytes(std::span(buffer).first(wanted)));
    if (count == 0) break;
    const std::string_view piece(buffer.data(), count);
    read.add(piece);
    lines.add(piece);
  }
  return read;
}

}  // namespace halfscope
