// Signals that ask for an end: SIGINT, SIGTERM and SIGHUP.
#pragma once

#include <array>
#include <csignal>
#include <string>
#include <vector>

namespace halfscope {

/// While it lives, one of these signals ends the program with a line and the status that StoppedBySignal has:
/// at once before `begin_work`, later when the work has come to an end that it can go on from. The next
/// signal ends the program at once. One that the program was told to ignore, as nohup does, stays ignored.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  /// From now on the first signal is taken down alone: there is something to save.
  static void begin_work() noexcept;

  /// The signal that was taken down, or 0.
  [[nodiscard]] static int received() noexcept;

 private:
  std::array<struct sigaction, 3> before_{};
};

/// "SIGTERM", of one of these.
[[nodiscard]] std::string signal_name(int signal);

/// Thrown once all that a signal asked to end has ended; the program says `lines` and ends by the signal, or
/// with status 3 after SIGTERM.
struct StoppedBySignal {
  int signal = 0;
  std::vector<std::string> lines{};
};

}  // namespace halfscope
