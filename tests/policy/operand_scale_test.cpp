// Scales of whole operands against a table of TransformerEngine's.
#include <halfscope/policy/operand_scale.hpp>

#include <limits>

#include "tests/support/catch.hpp"

namespace halfscope::operand_scale_test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(),
                nan = std::numeric_limits<float>::quiet_NaN(),
                largest_float = std::numeric_limits<float>::max();

std::vector<float> scales_after(const std::vector<float>& maxima, const DelayedScaling& options) {
  DelayedScale delayed;
  std::vector<float> scales;
  for (const float amax : maxima) {
    delayed.update(amax, 448, options);
    scales.push_back(delayed.scale);
  }
  return scales;
}

TEST_CASE("a delayed scale follows the magnitudes of a window as TransformerEngine's does", "[operands]") {
  const std::vector<float> maxima{1, 4, 0, 2, infinity, 2, 2, 2, .5f, .5f, .5f, .5f};
  CHECK(scales_after(maxima, {.history = 3}) ==
        std::vector<float>{448, 112, 112, 112, 112, 112, 112, 224, 224, 224, 896, 896});
  CHECK(scales_after(maxima, {.history = 3, .amax = AmaxChoice::most_recent}) ==
        std::vector<float>{448, 112, 112, 224, 224, 224, 224, 224, 896, 896, 896, 896});
  CHECK(scales_after(maxima, {.history = 1}) ==
        std::vector<float>{448, 112, 112, 224, 224, 224, 224, 224, 896, 896, 896, 896});
}

TEST_CASE("margin, NaN and tiny magnitudes of a delayed scale", "[operands]") {
  CHECK(scales_after({2}, {.margin = 1}) == std::vector<float>{112});
  CHECK(scales_after({2}, {.margin = -1}) == std::vector<float>{448});
  CHECK(scales_after({2, nan, 4}, {.history = 3}) == std::vector<float>{224, 224, 112});
  CHECK(scales_after({2, nan}, {.amax = AmaxChoice::most_recent}) == std::vector<float>{224, 224});
  CHECK(scales_after({1e-38f}, {}) == std::vector<float>{largest_float});
}

TEST_CASE("a scale of the operand's own magnitude", "[operands]") {
  CHECK(current_scale(2, 448) == 224);
  CHECK(current_scale(2, 57344) == 28672);
  for (const float amax : {0.0f, infinity, nan}) CHECK(current_scale(amax, 448) == 1);
  CHECK(current_scale(1e-38f, 448) == largest_float);
}

}  // namespace
}  // namespace halfscope::operand_scale_test
