// One row of pooling windows, compiled once per instruction set.
#include "lib/nn/max_pool.hpp"

namespace halfscope {

template <Isa isa>
void MaxPoolLoops<isa>::forward(const float* top, const float* bottom, std::int64_t windows,
                                std::int64_t channels, float* y, std::uint8_t* winner) {
  for (std::int64_t w = 0; w < windows; ++w) {
    const float* corner[4] = {top + 2 * w * channels, top + (2 * w + 1) * channels, bottom + 2 * w * channels,
                              bottom + (2 * w + 1) * channels};
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) {
      const float a = corner[0][c], b = corner[1][c], d = corner[2][c], e = corner[3][c];
      const bool right = b > a, bottom_right = e > d;
      const float upper = right ? b : a, lower = bottom_right ? e : d;
      const bool below = lower > upper;
      y[w * channels + c] = below ? lower : upper;
      winner[w * channels + c] = static_cast<std::uint8_t>(below ? (bottom_right ? 3 : 2) : (right ? 1 : 0));
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
      corner[0][c] = which == 0 ? gradient : 0.0f;
      corner[1][c] = which == 1 ? gradient : 0.0f;
      corner[2][c] = which == 2 ? gradient : 0.0f;
      corner[3][c] = which == 3 ? gradient : 0.0f;
    }
  }
}

template struct MaxPoolLoops<target_isa>;

}  // namespace halfscope
