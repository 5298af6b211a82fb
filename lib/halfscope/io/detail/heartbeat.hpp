// A thread that does something from time to time.
#pragma once

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace halfscope {

/// Calls a function again and again until it is destroyed, with a small stack. Where the system starts no
/// thread, nothing is called.
class Heartbeat {
 public:
  Heartbeat(std::chrono::seconds every, std::function<void()> beat);
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  ~Heartbeat();

 private:
  void work();

  std::chrono::seconds every_;
  std::function<void()> beat_;
  std::mutex mutex_;
  std::condition_variable end_;
  bool ends_ = false, works_ = false;
  pthread_t thread_{};
};

}  // namespace halfscope
