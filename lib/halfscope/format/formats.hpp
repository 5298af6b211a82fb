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
