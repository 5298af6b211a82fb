// The loops over the elementary functions, compiled once per instruction set.
#include "lib/nn/elementary.hpp"

namespace halfscope {
namespace {

template <Elementary function>
void loop(const float* x, float* y, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) y[i] = elementary<function>(x[i]);
}

}  // namespace

template <>
void elementary_isa<target_isa>(Elementary function, const float* x, float* y, std::size_t count) {
  switch (function) {
    case Elementary::exp:
      return loop<Elementary::exp>(x, y, count);
    case Elementary::log:
      return loop<Elementary::log>(x, y, count);
    case Elementary::tanh:
      return loop<Elementary::tanh>(x, y, count);
    case Elementary::erf:
      return loop<Elementary::erf>(x, y, count);
    case Elementary::rsqrt:
      return loop<Elementary::rsqrt>(x, y, count);
    case Elementary::sigmoid:
      return loop<Elementary::sigmoid>(x, y, count);
  }
}

}  // namespace halfscope
