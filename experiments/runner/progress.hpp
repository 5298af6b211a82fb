// Progress on stderr: one status line on a terminal, a plain line every 10 s otherwise.
#pragma once

#include <chrono>
#include <string>

namespace halfscope {

class StatusLine {
 public:
  StatusLine();
  /// Shows `text` if it is time to; the line has no colour and no cursor movement where stderr is no
  /// terminal.
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
