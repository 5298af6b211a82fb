// Turns elements as files store them into FP32.
#pragma once

#include <cstddef>
#include <span>

#include <halfscope/format/stored_type.hpp>
#include <halfscope/kernel/isa.hpp>

namespace halfscope {

/// `widen` compiled for one instruction set.
template <Isa isa>
void widen_isa(StoredType type, const std::byte* in, float* out, std::size_t count);
template <>
void widen_isa<Isa::baseline>(StoredType, const std::byte*, float*, std::size_t);
template <>
void widen_isa<Isa::avx2>(StoredType, const std::byte*, float*, std::size_t);
template <>
void widen_isa<Isa::avx512>(StoredType, const std::byte*, float*, std::size_t);

/// out[i] = element i of `in`, `out.size()` little-endian elements of `type` without alignment. Types of up
/// to 32 bits keep their value exactly, and NaN its payload. f64 is rounded to odd (to zero, then the last
/// bit set where anything was lost; Boldo and Melquiond 2008), so that rounding the float to a format of up
/// to 22 significand bits gives what rounding the double would; it is never zero nor infinite where the
/// double was not.
inline void widen(StoredType type, const std::byte* in, std::span<float> out) {
  dispatch_isa([&]<Isa isa>() { widen_isa<isa>(type, in, out.data(), out.size()); });
}

}  // namespace halfscope
