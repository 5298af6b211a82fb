// The loop of relative noise, compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include <halfscope/kernel/cast/noise.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

namespace halfscope {

/// A part of an array. rounded: the same numbers in a format, which stay where they are equal.
struct NoisePart {
  float* values;
  const float* rounded;
  std::size_t count;
  std::uint32_t first;  // random number
  float amount;
};

template <Isa isa>
void add_noise_isa(const NoisePart& part);
template <>
void add_noise_isa<Isa::baseline>(const NoisePart&);
template <>
void add_noise_isa<Isa::avx2>(const NoisePart&);
template <>
void add_noise_isa<Isa::avx512>(const NoisePart&);

}  // namespace halfscope
