// Relative noise at random, as large as the round-off of a format.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <halfscope/format/float_format.hpp>

namespace halfscope {

/// Noise of a relative size: each number x becomes x (1 + amount r), with r uniform in [-1, 1).
struct RelativeNoise {
  float amount = 0;
  std::uint64_t seed = 0;             ///< each has numbers r of its own
  std::optional<FloatFormat> held{};  ///< numbers that this format holds stay what they are
};

/// Adds noise in place, in as many threads as there are; the result depends neither on these nor on the
/// instruction set. Whole numbers up to 1 / amount stay, as sums and products of them are exact, and
/// infinities and NaNs. In CPU memory.
void add_noise(std::span<float> values, const RelativeNoise& noise);

}  // namespace halfscope
