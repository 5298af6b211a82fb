// The handler stores a number, and leaves the next signal to the system.
#include "experiments/run/stop_signals.hpp"

#include <atomic>

namespace halfscope {
namespace {

constexpr std::array signals{SIGINT, SIGTERM, SIGHUP};

std::atomic<int> first_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may only touch such");

void take_down(int signal) {
  const bool is_second = first_signal.exchange(signal) != 0;
  struct sigaction ends {};
  ends.sa_handler = SIG_DFL;
  for (const int other : signals) ::sigaction(other, &ends, nullptr);
  if (is_second) ::raise(signal);  // both had come before either handler ran
}

}  // namespace

StopSignals::StopSignals() {
  first_signal.store(0);
  struct sigaction action {};
  action.sa_handler = take_down;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < signals.size(); ++i) {
    ::sigaction(signals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(signals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &before_[i], nullptr);
}

int StopSignals::received() noexcept {
  return first_signal.load();
}

std::string signal_name(int signal) {
  if (signal == SIGINT) return "SIGINT";
  return signal == SIGTERM ? "SIGTERM" : "SIGHUP";
}

}  // namespace halfscope
