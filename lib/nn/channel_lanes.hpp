// Vectors of a pixel's channels and of a byte for each, for loops that are compiled once per instruction set.
#pragma once

#include <cstdint>
#include <cstring>

#include <halfscope/kernel/detail/vector.hpp>

namespace halfscope {
namespace {

using Bytes [[gnu::vector_size(lanes)]] = std::uint8_t;

Ints load_bytes(const std::uint8_t* from, std::size_t count) {
  Bytes bytes{};
  std::memcpy(&bytes, from, count);
  return __builtin_convertvector(bytes, Ints);
}
void store_bytes(std::uint8_t* to, Ints numbers, std::size_t count) {
  const Bytes bytes = __builtin_convertvector(numbers, Bytes);
  std::memcpy(to, &bytes, count);
}

/// Calls body(first channel, how many) for each vector of a pixel's channels.
template <typename Body>
void for_channels(std::int64_t channels, const Body& body) {
  std::int64_t c = 0;
  for (; c + std::int64_t{lanes} <= channels; c += std::int64_t{lanes}) body(c, lanes);
  if (c < channels) body(c, static_cast<std::size_t>(channels - c));
}

}  // namespace
}  // namespace halfscope
