// One row of pooling windows, compiled once per instruction set.
#include "lib/nn/channel_lanes.hpp"
#include "lib/nn/max_pool.hpp"
#include "lib/nn/max_pool_element.hpp"

namespace halfscope {

template <Isa isa>
void MaxPoolLoops<isa>::forward(const float* top, const float* bottom, std::int64_t windows,
                                std::int64_t channels, float* y, std::uint8_t* winner) {
  for (std::int64_t w = 0; w < windows; ++w) {
    for_channels(channels, [&](std::int64_t c, std::size_t count) {
      const std::int64_t left = 2 * w * channels + c, right = left + channels, to = w * channels + c;
      const auto largest =
          window_maximum<Ints>(load_some(top + left, count), load_some(top + right, count),
                               load_some(bottom + left, count), load_some(bottom + right, count));
      store_some(y + to, largest.value, count);
      store_bytes(winner + to, largest.corner, count);
    });
  }
}

template <Isa isa>
void MaxPoolLoops<isa>::backward(const float* y_gradient, const std::uint8_t* winner, std::int64_t windows,
                                 std::int64_t channels, float* top, float* bottom) {
  for (std::int64_t w = 0; w < windows; ++w) {
    for_channels(channels, [&](std::int64_t c, std::size_t count) {
      const std::int64_t left = 2 * w * channels + c, right = left + channels, from = w * channels + c;
      const FloatVec gradient = load_some(y_gradient + from, count);
      const Ints which = load_bytes(winner + from, count);
      store_some(top + left, corner_gradient(gradient, which, 0), count);
      store_some(top + right, corner_gradient(gradient, which, 1), count);
      store_some(bottom + left, corner_gradient(gradient, which, 2), count);
      store_some(bottom + right, corner_gradient(gradient, which, 3), count);
    });
  }
}

template struct MaxPoolLoops<target_isa>;

}  // namespace halfscope
