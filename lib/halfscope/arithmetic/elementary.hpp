// The elementary functions from plain +, -, *, / and square root: the same bits on every machine, host and
// device.
#pragma once

#include <array>
#include <string_view>

#include <halfscope/arithmetic/elementary/cos.hpp>
#include <halfscope/arithmetic/elementary/erf.hpp>
#include <halfscope/arithmetic/elementary/exp.hpp>
#include <halfscope/arithmetic/elementary/log.hpp>
#include <halfscope/arithmetic/elementary/rsqrt.hpp>
#include <halfscope/arithmetic/elementary/tanh.hpp>
#include <halfscope/core/names.hpp>

namespace halfscope {

/// The functions from float to float.
enum class Elementary : std::uint8_t { exp, log, tanh, erf, rsqrt, sigmoid };
template <>
inline constexpr std::array<std::string_view, 6> enum_names<Elementary>{"exp", "log",   "tanh",
                                                                        "erf", "rsqrt", "sigmoid"};

/// The largest error of each over all floats, in the spacing of FP32 numbers at the exact value.
inline constexpr std::array<double, 6> elementary_ulps{1.1, 0.83, 1.34, 1.24, 1.5, 2.41};

/// The function known at compile time; no branch depends on the data, so loops over it vectorise.
template <Elementary function>
[[nodiscard]] HALFSCOPE_HD float elementary(float x) {
  if constexpr (function == Elementary::exp) return exp(x);
  if constexpr (function == Elementary::log) return log(x);
  if constexpr (function == Elementary::tanh) return tanh(x);
  if constexpr (function == Elementary::erf) return erf(x);
  if constexpr (function == Elementary::rsqrt) return rsqrt(x);
  if constexpr (function == Elementary::sigmoid) return sigmoid(x);
}

}  // namespace halfscope
