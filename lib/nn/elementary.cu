// Elementary functions of arrays on the device.
#include <halfscope/kernel/detail/launch.cuh>

#include "lib/nn/elementary.hpp"

namespace halfscope::cuda {
namespace {

template <Elementary function>
struct Apply {
  const float* x;
  float* y;
  HALFSCOPE_HD void operator()(std::int64_t i) const { y[i] = elementary<function>(x[i]); }
};

template <Elementary function>
void launch(std::span<const float> x, std::span<float> y) {
  for_each(static_cast<std::int64_t>(x.size()), Apply<function>{on_device(x), on_device(y)}, "apply");
}

}  // namespace

void apply(Elementary function, std::span<const float> x, std::span<float> y) {
  switch (function) {
    case Elementary::exp:
      return launch<Elementary::exp>(x, y);
    case Elementary::log:
      return launch<Elementary::log>(x, y);
    case Elementary::tanh:
      return launch<Elementary::tanh>(x, y);
    case Elementary::erf:
      return launch<Elementary::erf>(x, y);
    case Elementary::rsqrt:
      return launch<Elementary::rsqrt>(x, y);
    case Elementary::sigmoid:
      return launch<Elementary::sigmoid>(x, y);
  }
}

}  // namespace halfscope::cuda
