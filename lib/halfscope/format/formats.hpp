// The formats of hardware as constants; `catalogue.hpp` lists them by name.
#pragma once

#include <halfscope/format/float_format.hpp>
// First, or GCC takes its bf16 for one that hides the one below.
#include <halfscope/core/dtype.hpp>

namespace halfscope {

inline constexpr FloatFormat fp32{8, 23};
inline constexpr FloatFormat tf32{8, 10};
inline constexpr FloatFormat fp16{5, 10};
inline constexpr FloatFormat bf16{8, 7};
inline constexpr FloatFormat fp8_e4m3{4, 3, Specials::nan_only};
inline constexpr FloatFormat fp8_e5m2{5, 2};

}  // namespace halfscope
