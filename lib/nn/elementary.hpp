// Elementary functions of arrays: the bits of the scalar ones, on every instruction set and number of
// threads.
#pragma once

#include <cstddef>
#include <span>

#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/device/device.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

/// y[i] = function(x[i]); `x` and `y` may be the same array but not overlap otherwise. Throws InvalidArgument
/// if their sizes differ.
void apply(Elementary function, std::span<const float> x, std::span<float> y);

/// The same on the device, which `apply` calls where that is the active one.
namespace cuda {
void apply(Elementary function, std::span<const float> x, std::span<float> y);
}

/// The same in one thread, compiled for one instruction set.
template <Isa isa>
void elementary_isa(Elementary function, const float* x, float* y, std::size_t count);
template <>
void elementary_isa<Isa::baseline>(Elementary, const float*, float*, std::size_t);
template <>
void elementary_isa<Isa::avx2>(Elementary, const float*, float*, std::size_t);
template <>
void elementary_isa<Isa::avx512>(Elementary, const float*, float*, std::size_t);

}  // namespace halfscope
