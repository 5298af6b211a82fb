// Normal numbers from counter-based random bits.
#pragma once

#include <array>
#include <cmath>

#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/core/random.hpp>

namespace halfscope {

/// Two independent standard normal numbers, a function of the stream and `index` alone: Marsaglia's polar
/// method, whose attempts count up the stream's step.
[[nodiscard]] inline std::array<float, 2> normal_pair(RandomStream stream, std::uint64_t index) {
  for (;; ++stream.step) {
    const RandomBlock bits = stream.block(index);
    const float u = static_cast<float>(static_cast<std::int32_t>(bits[0]) >> 8) * 0x1p-23f;
    const float v = static_cast<float>(static_cast<std::int32_t>(bits[1]) >> 8) * 0x1p-23f;
    const float radius = u * u + v * v;
    if (!(radius > 0.0f && radius < 1.0f)) continue;
    const float factor = std::sqrt(-2.0f * log(radius) / radius);
    return {u * factor, v * factor};
  }
}

}  // namespace halfscope
