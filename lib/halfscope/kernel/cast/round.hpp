// Rounds arrays of floats to a format, with the fastest instructions that the machine has.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <halfscope/core/random.hpp>
#include <halfscope/device/device.hpp>
#include <halfscope/format/quantizer.hpp>

namespace halfscope {

/// Draw of stochastic rounding for element `index` of an array: 16 random bits and a half of the last of
/// them. Eight consecutive elements share one block of `stream`. The probability of rounding up is the
/// discarded fraction, exactly where that has 16 bits at most, as FP16's and BF16's normal numbers have, else
/// to the nearest 2^-16; numbers of the format stay what they are.
[[nodiscard]] HALFSCOPE_HD constexpr std::uint32_t rounding_bits(const RandomStream& stream,
                                                                 std::uint64_t index) {
  const std::uint32_t two = stream.block(index / 8)[index % 8 / 2];
  return (index % 2 == 0 ? two << 16 : two & 0xFFFF0000u) | 0x8000u;
}

/// `round` of arrays on the device, which it calls where that is the active one.
namespace cuda {
void round(std::span<const float> in, std::span<float> out, const Quantizer& q, const RandomStream& stream);
}

/// out[i] = round(in[i], q, rounding_bits(stream, i)), bit for bit, on one thread; `in` and `out` may be the
/// same array but not overlap otherwise. Throws InvalidArgument if their sizes differ.
void round(std::span<const float> in, std::span<float> out, const Quantizer& q, RandomStream stream = {});

/// `round` of the part of an array that begins at element `first`, stochastically and on the CPU:
/// element i of the part draws rounding_bits(stream, first + i). Throws InvalidArgument if their sizes
/// differ.
void round_stochastic_part(std::span<const float> in, std::span<float> out, const Quantizer& q,
                           const RandomStream& stream, std::uint64_t first);

/// As `round` in place, split over the threads.
void round_in_threads(std::span<float> values, const Quantizer& q, const RandomStream& stream = {});

}  // namespace halfscope
