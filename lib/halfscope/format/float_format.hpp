// A binary floating-point format as a plain value, with its exact limits.
#pragma once

#include <cstdint>

#include <halfscope/core/host_device.hpp>

namespace halfscope {

/// Which codes of the largest exponent are not numbers.
enum class Specials : std::uint8_t {
  ieee,         ///< all-ones exponent: infinities and NaNs (IEEE 754)
  nan_only,     ///< all-ones exponent and significand: NaN; no infinity (OCP E4M3)
  finite_only,  ///< every code is a finite number (OCP E3M2, E2M1)
};

enum class Subnormals : std::uint8_t {
  gradual,        ///< kept, as IEEE 754 asks
  flush_to_zero,  ///< results below the smallest normal number become zero of the same sign
};

/// A sign bit, `exponent_bits` (2..8) and `mantissa_bits` (1..23): every such format is a subset of FP32,
/// so emulated values are stored as float.
struct FloatFormat {
  int exponent_bits = 8;
  int mantissa_bits = 23;
  Specials specials = Specials::ieee;
  Subnormals subnormals = Subnormals::gradual;

  friend constexpr bool operator==(const FloatFormat&, const FloatFormat&) = default;

  [[nodiscard]] HALFSCOPE_HD constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  /// Exponent of the smallest normal number: -14 for fp16.
  [[nodiscard]] HALFSCOPE_HD constexpr int min_exponent() const { return 1 - bias(); }
  /// Exponent of the largest finite number: 15 for fp16, 8 for OCP E4M3.
  [[nodiscard]] HALFSCOPE_HD constexpr int max_exponent() const {
    return (1 << exponent_bits) - 1 - bias() - (specials == Specials::ieee ? 1 : 0);
  }
  /// Exponent of the smallest positive number: -24 for fp16.
  [[nodiscard]] HALFSCOPE_HD constexpr int lowest_exponent() const {
    return min_exponent() - (subnormals == Subnormals::gradual ? mantissa_bits : 0);
  }
  /// Bits of the largest finite number, as a float: 65504 for fp16, 448 for OCP E4M3.
  [[nodiscard]] HALFSCOPE_HD constexpr std::uint32_t max_finite_bits() const {
    const std::uint32_t all_ones = ((1u << mantissa_bits) - 1u) - (specials == Specials::nan_only ? 1u : 0u);
    return (static_cast<std::uint32_t>(max_exponent() + 127) << 23) | (all_ones << (23 - mantissa_bits));
  }
};

}  // namespace halfscope
