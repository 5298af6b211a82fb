// write(2): no buffer that fails later, no exception.
#include <halfscope/core/stderr_text.hpp>

#include <unistd.h>

#include <cerrno>

namespace halfscope {

void print_stderr(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace halfscope
