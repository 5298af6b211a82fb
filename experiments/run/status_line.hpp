// The status line on stderr: one line on a terminal, a plain line every 10 s otherwise and where TERM is
// dumb. It has no colour, so NO_COLOR asks for nothing.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace halfscope {

/// The first `width` bytes of `text`, or a few fewer: no character of UTF-8 is cut in two.
[[nodiscard]] std::string_view cut_to_width(std::string_view text, std::size_t width);

class StatusLine {
 public:
  StatusLine();
  /// Whether `update` would show a text now.
  [[nodiscard]] bool is_due() const;
  /// Shows `text` if it is time to, cut to the width of the terminal; the line has no cursor movement
  /// where stderr is no terminal.
  void update(const std::string& text);
  /// Shows `text` and leaves it there.
  void finish(const std::string& text);
  /// Takes the line away again, where stderr is a terminal and it is shown.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point last_;
};

}  // namespace halfscope
