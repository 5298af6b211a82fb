// Writes the status line.
#include "experiments/runner/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace halfscope {
namespace {
constexpr std::chrono::milliseconds terminal_interval{100};
constexpr std::chrono::seconds plain_interval{10};
}  // namespace

StatusLine::StatusLine() : terminal_(isatty(STDERR_FILENO) == 1), last_(Clock::now()) {}

void StatusLine::update(const std::string& text) {
  const auto now = Clock::now();
  const bool due = terminal_ ? !shown_ || now - last_ >= terminal_interval : now - last_ >= plain_interval;
  if (!due) return;
  last_ = now;
  shown_ = true;
  fmt::print(stderr, "{}{}{}", terminal_ ? "\r\x1b[K" : "", text, terminal_ ? "" : "\n");
  std::fflush(stderr);
}

void StatusLine::finish(const std::string& text) {
  fmt::print(stderr, "{}{}\n", terminal_ ? "\r\x1b[K" : "", text);
  shown_ = false;
}

void StatusLine::clear() {
  if (terminal_ && shown_) fmt::print(stderr, "\r\x1b[K");
  shown_ = false;
}

}  // namespace halfscope
