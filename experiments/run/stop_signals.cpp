// The handler stores a number, and leaves the next signal to the system; before the work it ends the program.
#include "experiments/run/stop_signals.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string_view>

namespace halfscope {
namespace {

struct NamedSignal {
  int number;
  std::string_view name;
};

constexpr std::array signals{NamedSignal{SIGINT, "SIGINT"}, NamedSignal{SIGTERM, "SIGTERM"},
                             NamedSignal{SIGHUP, "SIGHUP"}};

constexpr int failed_run = 3;  // the exit status

std::atomic<int> first_signal = 0;
std::atomic<bool> work_has_begun = false;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "a signal handler may only touch such");

std::string_view name_of_signal(int signal) {
  return std::ranges::find(signals, signal, &NamedSignal::number)->name;
}

/// A line on stderr, without what a signal handler may not call.
void print_stopped_before_work(std::string_view name) {
  std::array<char, 128> line;
  char* end = line.data();
  for (const std::string_view part :
       {std::string_view("halfscope: stopped by "), name,
        std::string_view(" before training: no run was changed; give the same command again\n")})
    end = std::copy(part.begin(), part.end(), end);
  static_cast<void>(::write(STDERR_FILENO, line.data(), static_cast<std::size_t>(end - line.data())));
}

/// Reading a data set may wait for a slow disk, so nobody asks whether a signal has come meanwhile.
void end_at_once(int signal) {
  print_stopped_before_work(name_of_signal(signal));
  if (signal == SIGTERM) ::_exit(failed_run);
  ::signal(signal, SIG_DFL);
  ::raise(signal);  // once the handler has returned
}

void take_down(int signal) {
  if (!work_has_begun.load()) return end_at_once(signal);
  const bool is_second = first_signal.exchange(signal) != 0;
  struct sigaction ends {};
  ends.sa_handler = SIG_DFL;
  for (const NamedSignal& other : signals) ::sigaction(other.number, &ends, nullptr);
  if (is_second) ::raise(signal);  // both had come before either handler ran
}

}  // namespace

StopSignals::StopSignals() {
  first_signal.store(0);
  work_has_begun.store(false);
  struct sigaction action {};
  action.sa_handler = take_down;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < signals.size(); ++i) {
    ::sigaction(signals[i].number, nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(signals[i].number, &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i].number, &before_[i], nullptr);
  first_signal.store(0);  // later work in this process has not been told to end
}

void StopSignals::begin_work() noexcept {
  work_has_begun.store(true);
}

int StopSignals::received() noexcept {
  return first_signal.load();
}

std::string signal_name(int signal) {
  return std::string(name_of_signal(signal));
}

}  // namespace halfscope
