// One thread of a warp, for actions that go from thread to thread.
#pragma once

#include <cstdint>

#include "tests/ptx/warp.hpp"

namespace halfscope::ptx {

class Thread {
 public:
  Thread(Warp& warp, std::size_t lane) : warp_(warp), lane_(lane) {}

  /// Throws Violation where the register was never written.
  template <typename T>
  [[nodiscard]] T get(const Operand& operand) const {
    return warp_.get<T>(operand, lane_);
  }
  template <typename T>
  void set(const Operand& operand, T value) const {
    warp_.set(operand, lane_, value);
  }

  [[nodiscard]] std::uint32_t number() const { return warp_.thread_of(lane_); }
  [[nodiscard]] Environment& environment() const { return warp_.environment(); }
  [[nodiscard]] AsyncCopies& copies() const { return warp_.copies(lane_); }

 private:
  Warp& warp_;
  std::size_t lane_;
};

/// An action of one thread, carried out by each of a warp's.
template <void (*function)(Thread, const Operand*)>
void each_thread(Warp& warp, Lanes lanes, const Operand* operands) {
  warp.for_each(lanes, [&](std::size_t lane) { function(Thread(warp, lane), operands); });
}

}  // namespace halfscope::ptx
