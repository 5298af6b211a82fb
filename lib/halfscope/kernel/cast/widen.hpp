// Turns elements as files store them into FP32.
#pragma once

#include <cstddef>
#include <span>

#include <halfscope/core/dtype.hpp>

namespace halfscope {

/// out[i] = element i of `in`, `out.size()` little-endian elements of `type` without alignment. Types of up
/// to 32 bits keep their value exactly, and NaN its payload. f64 is rounded to odd (to zero, then the last
/// bit set where anything was lost; Boldo and Melquiond 2008), so that rounding the float to a format of up
/// to 22 significand bits gives what rounding the double would; it is never zero nor infinite where the
/// double was not.
void widen(DType type, const std::byte* in, std::span<float> out);

}  // namespace halfscope
