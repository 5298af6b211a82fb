// The timing harness of `halfscope bench`.
#include "experiments/cli/bench/bench.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
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

Times times_of(std::span<const double> ours, std::span<const double> others) {
  std::vector<double> ratios;
  std::ranges::transform(others, ours, std::back_inserter(ratios), std::divides());
  const auto middle = ratios.begin() + std::ssize(ratios) / 2;
  std::nth_element(ratios.begin(), middle, ratios.end());
  return {std::ranges::min(ours), std::ranges::min(others), *middle};
}

Times time_in_turn(const std::function<void()>& ours, const std::function<void()>& others, double time) {
  const int our_calls = calls_per_sample(ours), other_calls = calls_per_sample(others);
  std::vector<double> our_times, other_times;
  for (double spent = 0; spent < time || our_times.size() < 3;) {
    // Either is first once, since each finds the caches as the last one left them.
    double our_time = seconds(ours, our_calls);
    const double other_time = seconds(others, 2 * other_calls);
    our_time += seconds(ours, our_calls);
    our_times.push_back(our_time / (2 * our_calls));
    other_times.push_back(other_time / (2 * other_calls));
    spent += our_time + other_time;
  }
  return times_of(our_times, other_times);
}

}  // namespace halfscope
