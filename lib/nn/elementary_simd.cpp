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
  with_elementary(function, [&]<Elementary known>() { loop<known>(x, y, count); });
}

}  // namespace halfscope
