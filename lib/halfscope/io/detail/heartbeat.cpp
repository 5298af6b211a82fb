// POSIX threads, since those of C++ choose no stack: limits on memory count it.
#include <halfscope/io/detail/heartbeat.hpp>

#include <utility>

namespace halfscope {

Heartbeat::Heartbeat(std::chrono::seconds every, std::function<void()> beat)
    : every_(every), beat_(std::move(beat)) {
  constexpr std::size_t stack = 256 << 10;
  pthread_attr_t attributes{};
  if (::pthread_attr_init(&attributes) != 0) return;
  static_cast<void>(::pthread_attr_setstacksize(&attributes, stack));
  const auto start = [](void* self) -> void* {
    static_cast<Heartbeat*>(self)->work();
    return nullptr;
  };
  works_ = ::pthread_create(&thread_, &attributes, start, this) == 0;
  ::pthread_attr_destroy(&attributes);
}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  end_.notify_all();
  if (works_) ::pthread_join(thread_, nullptr);
}

void Heartbeat::work() {
  std::unique_lock lock(mutex_);
  while (!end_.wait_for(lock, every_, [&] { return ends_; })) beat_();
}

}  // namespace halfscope
