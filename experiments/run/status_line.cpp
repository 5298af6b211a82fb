// Writes the status line.
#include "experiments/run/status_line.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include <halfscope/core/stderr_text.hpp>

namespace halfscope {
namespace {

constexpr std::chrono::milliseconds terminal_interval{100};
constexpr std::chrono::seconds plain_interval{10};

/// Columns of the terminal, asked for anew: a window may have changed.
std::size_t terminal_width() {
  constexpr std::size_t usual = 80;
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

/// A terminal that calls itself dumb has no control sequences.
bool can_rewrite_line() {
  const char* name = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && (name == nullptr || std::string_view(name) != "dumb");
}

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0u) == 0x80u;
}

}  // namespace

std::string_view cut_to_width(std::string_view text, std::size_t width) {
  if (text.size() <= width) return text;
  while (width > 0 && continues_character(text[width])) --width;
  return text.substr(0, width);
}

StatusLine::StatusLine() : terminal_(can_rewrite_line()), last_(Clock::now()) {}

bool StatusLine::is_due() const {
  const auto waited = Clock::now() - last_;
  return terminal_ ? !shown_ || waited >= terminal_interval : waited >= plain_interval;
}

void StatusLine::update(const std::string& text) {
  if (!is_due()) return;
  last_ = Clock::now();
  shown_ = true;
  if (terminal_) {
    print_stderr(fmt::format("\r\x1b[K{}", cut_to_width(text, terminal_width())));
  } else {
    print_stderr(text + "\n");
  }
}

void StatusLine::finish(const std::string& text) {
  print_stderr(fmt::format("{}{}\n", terminal_ ? "\r\x1b[K" : "", text));
  shown_ = false;
}

void StatusLine::clear() {
  if (terminal_ && shown_) print_stderr("\r\x1b[K");
  shown_ = false;
}

}  // namespace halfscope
