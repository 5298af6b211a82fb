// The timing harness of `halfscope bench`.
#include "experiments/cli/bench/bench.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

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
  Times times{INFINITY, INFINITY};
  std::vector<double> ratios;
  for (double spent = 0; spent < time || ratios.size() < 3;) {
    double our_time = 0, other_time = 0;
    const auto time_ours = [&] {
      const double taken = seconds(ours, our_calls);
      times.ours = std::min(times.ours, taken / our_calls);
      our_time += taken;
    };
    const auto time_others = [&] {
      const double taken = seconds(others, other_calls);
      times.others = std::min(times.others, taken / other_calls);
      other_time += taken;
    };
    // Either is first once, since each finds the caches as the last one left them.
    time_ours();
    time_others();
    time_others();
    time_ours();
    ratios.push_back(other_time / other_calls / (our_time / our_calls));
    spent += our_time + other_time;
  }
  std::nth_element(ratios.begin(), ratios.begin() + std::ssize(ratios) / 2, ratios.end());
  times.ratio = ratios[ratios.size() / 2];
  return times;
}

}  // namespace halfscope
