// One row of pooling windows, compiled once per instruction set.
#include "lib/nn/max_pool.hpp"
#include "lib/nn/max_pool_element.hpp"

namespace halfscope {

template <Isa isa>
void MaxPoolLoops<isa>::forward(const float* top, const float* bottom, std::int64_t windows,
                                std::int64_t channels, float* y, std::uint8_t* winner) {
  for (std::int64_t w = 0; w < windows; ++w) {
    const float* corner[4] = {top + 2 * w * channels, top + (2 * w + 1) * channels, bottom + 2 * w * channels,
                              bottom + (2 * w + 1) * channels};
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) {
      const WindowMaximum largest = window_maximum(corner[0][c], corner[1][c], corner[2][c], corner[3][c]);
      y[w * channels + c] = largest.value;
      winner[w * channels + c] = largest.corner;
    }
  }
}

template <Isa isa>
void MaxPoolLoops<isa>::backward(const float* y_gradient, const std::uint8_t* winner, std::int64_t windows,
                                 std::int64_t channels, float* top, float* bottom) {
  for (std::int64_t w = 0; w < windows; ++w) {
    float* corner[4] = {top + 2 * w * channels, top + (2 * w + 1) * channels, bottom + 2 * w * channels,
                        bottom + (2 * w + 1) * channels};
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) {
      const float gradient = y_gradient[w * channels + c];
      const std::uint8_t which = winner[w * channels + c];
      corner[0][c] = corner_gradient(gradient, which, 0);
      corner[1][c] = corner_gradient(gradient, which, 1);
      corner[2][c] = corner_gradient(gradient, which, 2);
      corner[3][c] = corner_gradient(gradient, which, 3);
    }
  }
}

template struct MaxPoolLoops<target_isa>;

}  // namespace halfscope
