// A tensor's place on a tape, and when its numbers need rounding.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halfscope {

/// A tensor on a tape.
struct TensorRef {
  std::size_t index = 0;
};

/// Training computes gradients and batch statistics; evaluation uses the running ones and keeps nothing.
enum class Phase : std::uint8_t { training, evaluation };

/// Whether an operation can make numbers that its inputs' format does not hold; a maximum or a copy cannot.
enum class Rounds : std::uint8_t { yes, no };

}  // namespace halfscope
