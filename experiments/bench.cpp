// The timing harness of `halfscope bench`.
#include "experiments/bench.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace halfscope {
namespace {

constexpr double shortest_sample = 1e-3;  // seconds: far above the clock's resolution

double seconds(const std::function<void()>& function, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Calls that fill a sample; the first ones warm caches up.
int calls_per_sample(const std::function<void()>& function) {
  function();
  int calls = 1;
  while (seconds(function, calls) < shortest_sample) calls *= 2;
  return calls;
}

}  // namespace

Times time_in_turn(const std::function<void()>& ours, const std::function<void()>& others, double time) {
  const int our_calls = calls_per_sample(ours), other_calls = calls_per_sample(others);
  Times best{INFINITY, INFINITY};
  int samples = 0;
  for (double spent = 0; spent < time || samples < 5; ++samples) {
    // First the one, then the other, since each finds the caches as the last one left them.
    const bool ours_first = samples % 2 == 0;
    double our_time = ours_first ? seconds(ours, our_calls) : 0;
    const double other_time = seconds(others, other_calls);
    if (!ours_first) our_time = seconds(ours, our_calls);
    best = {std::min(best.ours, our_time / our_calls), std::min(best.others, other_time / other_calls)};
    spent += our_time + other_time;
  }
  return best;
}

}  // namespace halfscope
