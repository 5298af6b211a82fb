// A binary floating-point format as a plain value, with its exact limits.
#pragma once

#include <cstdint>

#include <halfscope/core/host_device.hpp>

namespace halfscope {

/// Which codes are not numbers.
enum class Specials : std::uint8_t {
  ieee,         ///< all-ones exponent: infinities and NaNs (IEEE 754)
  nan_only,     ///< all-ones exponent and significand: NaN; no infinity (OCP E4M3)
  finite_only,  ///< every code is a finite number (OCP E3M2, E2M1)
  fnuz,         ///< NaN in the place of -0, which zero has not; no infinity (E4M3FNUZ; IEEE P3109, finite)
  extended,     ///< IEEE P3109, extended: NaN in the place of -0, infinity for the largest code; without a
                ///< sign bit NaN for the largest code, infinity for the one below
};

enum class Subnormals : std::uint8_t {
  gradual,        ///< kept, as IEEE 754 asks
  flush_to_zero,  ///< results below the smallest normal number become zero of the same sign
};

enum class SignBit : std::uint8_t { present, absent };

/// A sign bit, `exponent_bits` (1..8) and `mantissa_bits` (0..23): every such format is a subset of FP32,
/// so emulated values are stored as float. A format without a sign bit has nan_only, finite_only or extended
/// specials; one without mantissa bits has fnuz, nan_only or extended ones, and powers of two alone.
struct FloatFormat {
  int exponent_bits = 8;
  int mantissa_bits = 23;
  Specials specials = Specials::ieee;
  Subnormals subnormals = Subnormals::gradual;
  int bias_offset = 0;  ///< beyond IEEE's bias, 2^(exponent_bits - 1) - 1
  SignBit sign = SignBit::present;

  friend constexpr bool operator==(const FloatFormat&, const FloatFormat&) = default;

  [[nodiscard]] HALFSCOPE_HD constexpr int bias() const {
    return (1 << (exponent_bits - 1)) - 1 + bias_offset;
  }
  /// Exponent of the smallest normal number: -14 for fp16.
  [[nodiscard]] HALFSCOPE_HD constexpr int min_exponent() const { return 1 - bias(); }
  /// Code of the largest finite number: 0x7e for OCP E4M3.
  [[nodiscard]] HALFSCOPE_HD constexpr std::uint32_t max_finite_code() const {
    const std::uint32_t largest_code = (1u << (exponent_bits + mantissa_bits)) - 1u;
    switch (specials) {
      case Specials::ieee:
        return largest_code - (1u << mantissa_bits);
      case Specials::nan_only:
        return largest_code - 1u;
      case Specials::extended:
        return largest_code - (sign == SignBit::present ? 1u : 2u);
      case Specials::finite_only:
      case Specials::fnuz:
        break;
    }
    return largest_code;
  }
  /// Exponent of the largest finite number: 15 for fp16, 8 for OCP E4M3.
  [[nodiscard]] HALFSCOPE_HD constexpr int max_exponent() const {
    return static_cast<int>(max_finite_code() >> mantissa_bits) - bias();
  }
  /// Exponent of the smallest positive number: -24 for fp16.
  [[nodiscard]] HALFSCOPE_HD constexpr int lowest_exponent() const {
    return min_exponent() - (subnormals == Subnormals::gradual ? mantissa_bits : 0);
  }
  /// Bits of the largest finite number, as a float: 65504 for fp16, 448 for OCP E4M3.
  [[nodiscard]] HALFSCOPE_HD constexpr std::uint32_t max_finite_bits() const {
    const std::uint32_t mantissa = max_finite_code() & ((1u << mantissa_bits) - 1u);
    return (static_cast<std::uint32_t>(max_exponent() + 127) << 23) | (mantissa << (23 - mantissa_bits));
  }
  [[nodiscard]] HALFSCOPE_HD constexpr bool has_infinity() const {
    return specials == Specials::ieee || specials == Specials::extended;
  }
  [[nodiscard]] HALFSCOPE_HD constexpr bool has_nan() const { return specials != Specials::finite_only; }
  /// 1 where the last bits of the code and of the significand of a number in [2^exponent, 2^(exponent + 1))
  /// differ: without mantissa bits the former is the exponent's.
  [[nodiscard]] HALFSCOPE_HD constexpr std::uint32_t parity_flip(int exponent) const {
    return mantissa_bits == 0 ? static_cast<std::uint32_t>(exponent - min_exponent()) & 1u : 0u;
  }
  /// Whether -0 is a number beside +0.
  [[nodiscard]] HALFSCOPE_HD constexpr bool has_signed_zero() const {
    return sign == SignBit::present && specials != Specials::fnuz && specials != Specials::extended;
  }
};

}  // namespace halfscope
