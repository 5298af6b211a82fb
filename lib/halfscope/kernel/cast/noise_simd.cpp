// The loop of relative noise, compiled once per instruction set.
#include <halfscope/kernel/cast/detail/noise_simd.hpp>

#include <cmath>

namespace halfscope {
namespace {

/// The finalizer of MurmurHash3 (Appleby): each bit of the result depends on all of `x`.
constexpr std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return x ^ (x >> 16);
}

}  // namespace

template <>
void add_noise_isa<target_isa>(const NoisePart& part) {
  constexpr float whole = 0x1p23f;  // from which on every number is whole
  float* const values = part.values;
  const float* const rounded = part.rounded;
  const float amount = part.amount, most = 1 / amount;
  const std::uint32_t first = part.first;
#pragma omp simd
  for (std::size_t i = 0; i < part.count; ++i) {
    const float x = values[i], size = std::abs(x);
    const std::uint32_t bits = mixed(first + static_cast<std::uint32_t>(i));
    const float r = static_cast<float>(static_cast<std::int32_t>(bits >> 8)) * 0x1p-23f - 1;
    const bool is_whole = (size >= whole) | ((size + whole) - whole == size);
    const bool stays = (is_whole & (size <= most)) | !(x - x == 0) | (rounded[i] == x);
    values[i] = stays ? x : x + x * (amount * r);
  }
}

}  // namespace halfscope
