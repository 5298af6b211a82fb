// Dropout's factors from counter-based random bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <halfscope/core/random.hpp>
#include <halfscope/device/device.hpp>

namespace halfscope {

/// factors[i] = 0 with `probability`, as element i of `stream` decides, else 1 / (1 - probability).
void dropout_factors(const RandomStream& stream, float probability, std::span<float> factors);

/// `dropout_factors` of an array on the device, which it calls where that is the active one.
namespace cuda {
void dropout_factors(const RandomStream& stream, float probability, std::span<float> factors);
}

/// The four factors that one block of the stream decides, or as many of them as there are.
struct DropoutBlock {
  RandomStream stream;
  std::uint32_t threshold;
  float keep;
  float* factors;
  std::int64_t count;

  HALFSCOPE_HD void operator()(std::int64_t block) const {
    const RandomBlock bits = stream.block(static_cast<std::uint64_t>(block));
    for (std::int64_t lane = 0; lane < 4 && 4 * block + lane < count; ++lane) {
      factors[4 * block + lane] = bits[static_cast<std::size_t>(lane)] >> 8 < threshold ? 0.0f : keep;
    }
  }
};

[[nodiscard]] inline DropoutBlock dropout_block(const RandomStream& stream, float probability,
                                                std::span<float> factors) {
  return {stream, static_cast<std::uint32_t>(probability * 0x1p24f), 1.0f / (1.0f - probability),
          factors.data(), static_cast<std::int64_t>(factors.size())};
}

}  // namespace halfscope
