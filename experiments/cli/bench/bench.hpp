// Timing two things side by side: the harness and the table of `halfscope bench`.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <halfscope/core/isa.hpp>
#include <halfscope/device/array.hpp>

namespace halfscope {

struct BenchResult {
  double value = 0;  ///< measured value
  std::string unit;
  double ratio = 0;  ///< its speed as a share of the other's
  std::string against;
  std::string skipped{};  ///< why nothing was measured; empty where it was
};

struct BenchCase {
  std::string_view name;
  std::string_view summary;
  BenchResult (*run)();
  Device device = Device::cpu;
};

/// Every case, in the order in which they run.
[[nodiscard]] std::span<const BenchCase> bench_cases();

/// Seconds a call.
struct Times {
  double ours;    ///< the least
  double others;  ///< the least
  double ratio;   ///< others over ours, next to each other in time: the median
};

/// Samples taken in turn, as many of ours as of the others, one at least.
[[nodiscard]] Times times_of(std::span<const double> ours, std::span<const double> others);

/// Times the two in turn, so that both meet the same machine, for about `time` seconds.
[[nodiscard]] Times time_in_turn(const std::function<void()>& ours, const std::function<void()>& others,
                                 double time = 0.5);

/// Keeps the compiler from dropping what is written to memory.
inline void use_memory() {
  asm volatile("" : : : "memory");
}

/// c = a b of row-major matrices of `size` by `size`, by Eigen in one thread. Instantiated in a translation
/// unit per instruction set.
template <Isa isa>
void eigen_product_isa(const float* a, const float* b, float* c, int size);
/// Whether it multiplies and adds in one instruction.
template <Isa isa>
[[nodiscard]] bool eigen_has_fma_isa();

}  // namespace halfscope
