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

}  // namespace

void apply(Elementary function, std::span<const float> x, std::span<float> y) {
  with_elementary(function, [&]<Elementary known>() {
    for_each(std::ssize(x), Apply<known>{on_device(x), on_device(y)}, "apply");
  });
}

}  // namespace halfscope::cuda
