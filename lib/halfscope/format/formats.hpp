// The formats of hardware as constants; `catalogue.hpp` lists them by name.
#pragma once

#include <halfscope/format/float_format.hpp>
// First, or GCC takes its bf16 for one that hides the one below.
#include <halfscope/core/dtype.hpp>
#include <halfscope/core/error.hpp>

namespace halfscope {

inline constexpr FloatFormat fp32{8, 23};
inline constexpr FloatFormat tf32{8, 10};
inline constexpr FloatFormat fp16{5, 10};
inline constexpr FloatFormat bf16{8, 7};
inline constexpr FloatFormat fp8_e4m3{4, 3, Specials::nan_only};
inline constexpr FloatFormat fp8_e5m2{5, 2};
inline constexpr FloatFormat fp8_e4m3fnuz{
    .exponent_bits = 4, .mantissa_bits = 3, .specials = Specials::fnuz, .bias_offset = 1};
inline constexpr FloatFormat fp8_e5m2fnuz{
    .exponent_bits = 5, .mantissa_bits = 2, .specials = Specials::fnuz, .bias_offset = 1};
inline constexpr FloatFormat fp8_e4m3b11fnuz{
    .exponent_bits = 4, .mantissa_bits = 3, .specials = Specials::fnuz, .bias_offset = 4};
inline constexpr FloatFormat fp6_e3m2{3, 2, Specials::finite_only};
inline constexpr FloatFormat fp6_e2m3{2, 3, Specials::finite_only};
inline constexpr FloatFormat fp4_e2m1{2, 1, Specials::finite_only};
/// IEEE's pattern with the bits of OCP's E4M3.
inline constexpr FloatFormat e4m3{4, 3};
inline constexpr FloatFormat e3m4{3, 4};
/// The scales of NVFP4: E4M3 whose sign bit is ignored.
inline constexpr FloatFormat ue4m3{
    .exponent_bits = 4, .mantissa_bits = 3, .specials = Specials::nan_only, .sign = SignBit::absent};
/// A scale of PTX 9.4, eight bits without a sign.
inline constexpr FloatFormat ue5m3{
    .exponent_bits = 5, .mantissa_bits = 3, .specials = Specials::nan_only, .sign = SignBit::absent};

/// The format of stored elements; throws InvalidArgument for f64, which is wider than any format here.
[[nodiscard]] constexpr FloatFormat format_of(DType type) {
  switch (type) {
    case DType::f16:
      return fp16;
    case DType::bf16:
      return bf16;
    case DType::f32:
      return fp32;
    case DType::f8_e4m3:
      return fp8_e4m3;
    case DType::f8_e5m2:
      return fp8_e5m2;
    case DType::f64:
      break;
  }
  throw InvalidArgument("format_of: f64 is wider than fp32; f16, bf16, f32, f8_e4m3 or f8_e5m2");
}

}  // namespace halfscope
