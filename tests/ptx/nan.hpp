// NaNs as NVIDIA GPUs return them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include <halfscope/format/encoding.hpp>

namespace halfscope::ptx {

/// The canonical NaN of .f32. The PTX ISA defines it for min and max; of the other results it says NaN and no
/// more, and the CUDA C++ Programming Guide names this pattern for every operation in single precision.
inline constexpr std::uint32_t canonical_nan_f32 = 0x7FFFFFFF;
/// Result of min and max of .f64, for which the ISA promises a NaN and no more.
inline constexpr std::uint64_t canonical_nan_f64 = 0x7FF8'0000'0000'0000;

/// `x`, or the canonical NaN.
[[nodiscard]] inline float canonical(float x) {
  return std::isnan(x) ? std::bit_cast<float>(canonical_nan_f32) : x;
}
/// Double precision keeps the NaN that the processor returns, as no document names one.
[[nodiscard]] inline double canonical(double x) {
  return x;
}

/// The code of `x`, a number of `format`, fp16 or bf16; of every NaN 0x7FFF, as the ISA has it for both.
[[nodiscard]] inline std::uint16_t code_of(float x, const FloatFormat& format) {
  return std::isnan(x) ? std::uint16_t{0x7FFF} : static_cast<std::uint16_t>(encode(x, format));
}

}  // namespace halfscope::ptx
