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

/// body.operator()<function>(): a function that is known when the program runs, as a constant of the loops.
template <typename Body>
void with_elementary(Elementary function, const Body& body) {
  switch (function) {
    case Elementary::exp:
      return body.template operator()<Elementary::exp>();
    case Elementary::log:
      return body.template operator()<Elementary::log>();
    case Elementary::tanh:
      return body.template operator()<Elementary::tanh>();
    case Elementary::erf:
      return body.template operator()<Elementary::erf>();
    case Elementary::rsqrt:
      return body.template operator()<Elementary::rsqrt>();
    case Elementary::sigmoid:
      return body.template operator()<Elementary::sigmoid>();
  }
}

}  // namespace halfscope
