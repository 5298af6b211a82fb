// Reads files and pipes from their beginning, and waits for none of them for ever.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <span>
#include <stdexcept>
#include <system_error>

#include <halfscope/core/error.hpp>
#include <halfscope/io/detail/posix_file.hpp>
#include <halfscope/io/file.hpp>

namespace halfscope {
namespace {

/// A file that is read from its beginning to its end: a regular one, a pipe, a terminal.
class Source {
 public:
  /// Throws InvalidArgument if `path` is missing, a folder or not readable.
  explicit Source(const std::filesystem::path& path)
      : name_(printable(path)), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (file_.number() < 0) refuse_source(reason(errno));
    if (::fstat(file_.number(), &status_) != 0) throw RuntimeFailure(describe(reason(errno)));
    if (S_ISDIR(status_.st_mode)) refuse_source("it is a folder; give a file");
    if (!is_regular() && !S_ISFIFO(status_.st_mode) && ::isatty(file_.number()) != 1)
      refuse_source("it is neither a file nor a pipe");
  }

  [[nodiscard]] bool is_regular() const { return S_ISREG(status_.st_mode); }
  /// Bytes of a regular file when it was opened, 0 of others.
  [[nodiscard]] std::size_t size() const {
    return is_regular() ? static_cast<std::size_t>(status_.st_size) : 0;
  }
  [[nodiscard]] std::string describe(std::string_view why) const {
    return fmt::format("cannot read {}: {}", name_, why);
  }
  [[noreturn]] void refuse_source(std::string_view why) const { throw InvalidArgument(describe(why)); }

  /// Waits for bytes and returns how many were read, 0 at the end. A pipe that nobody has opened for writing
  /// looks as if it were at its end; somebody has to come within five seconds.
  [[nodiscard]] std::size_t read(std::span<char> to) {
    for (;;) {
      const ssize_t count = ::read(file_.number(), to.data(), to.size());
      if (count > 0) begun_ = true;
      if (count > 0 || (count == 0 && begun_)) return static_cast<std::size_t>(count);
      if (count == 0 && !S_ISFIFO(status_.st_mode)) return 0;
      if (count == 0) {
        wait_for_writer();
      } else if (errno == EAGAIN) {
        static_cast<void>(wait(-1));
      } else if (errno != EINTR) {
        throw RuntimeFailure(describe(reason(errno)));
      }
    }
  }

 private:
  /// Whether there is something to read, or a writer has gone, within so many milliseconds; -1: for ever.
  [[nodiscard]] bool wait(int milliseconds) const {
    pollfd pipe{.fd = file_.number(), .events = POLLIN, .revents = 0};
    return ::poll(&pipe, 1, milliseconds) != 0;
  }

  void wait_for_writer() {
    constexpr int patience_s = 5;
    if (waited_) refuse_source(fmt::format("it is a pipe that nobody has written to for {} s", patience_s));
    begun_ = wait(patience_s * 1000);
    waited_ = true;
  }

  std::string name_;
  Descriptor file_;
  struct stat status_ {};
  bool begun_ = false;   ///< somebody has written, so that an end is the end
  bool waited_ = false;  ///< for somebody who would
};

/// Most bytes of a pipe or a terminal that is read whole.
constexpr std::size_t most_of_a_pipe = std::size_t{1} << 30;

std::string read_all(Source& source) {
  constexpr std::size_t smallest_step = 1 << 16;
  std::string contents;
  std::size_t used = 0;
  contents.resize(std::max(source.size() + 1, smallest_step));  // one more, so that the end shows at once
  for (;;) {
    if (used == contents.size()) contents.resize(2 * contents.size());
    const std::size_t count = source.read(std::span(contents).subspan(used));
    if (count == 0) break;
    used += count;
    if (!source.is_regular() && used > most_of_a_pipe)
      source.refuse_source(
          fmt::format("it is a pipe with more than {} MiB; give a file", most_of_a_pipe >> 20));
  }
  contents.resize(used);
  return contents;
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  Source source(path);
  try {
    return read_all(source);
  } catch (const std::bad_alloc&) {
    throw RuntimeFailure(source.describe(fmt::format("its {} bytes do not fit in memory", source.size())));
  } catch (const std::length_error&) {
    throw RuntimeFailure(source.describe(fmt::format("its {} bytes do not fit in memory", source.size())));
  }
}

void read_lines(const std::filesystem::path& path, const LineSink& take, const LineSink& take_cut) {
  constexpr std::size_t step = 1 << 16;
  Source source(path);
  std::string begun, block(step, '\0');
  std::size_t line = 0;
  while (const std::size_t count = source.read(block)) {
    std::string_view bytes(block.data(), count);
    for (std::size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
      begun += bytes.substr(0, end);
      bytes.remove_prefix(end + 1);
      take(++line, begun);
      begun.clear();
    }
    begun += bytes;
    if (begun.size() > longest_line)
      source.refuse_source(fmt::format("line {} is longer than {} bytes", line + 1, longest_line));
  }
  if (!begun.empty()) take_cut(line + 1, begun);
}

void read_lines(const std::filesystem::path& path, const LineSink& take) {
  read_lines(path, take, take);
}

}  // namespace halfscope
