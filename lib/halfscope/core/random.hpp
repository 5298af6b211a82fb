// Counter-based random bits (Philox4x32-10): a pure function of key and counter, the same on CPU and GPU.
#pragma once

#include <array>
#include <cstdint>

#include <halfscope/core/host_device.hpp>

namespace halfscope {

/// 128 random bits.
using RandomBlock = std::array<std::uint32_t, 4>;

/// Philox4x32 with 10 rounds (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011).
HALFSCOPE_HD constexpr RandomBlock philox(RandomBlock counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {
        static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(product1),
        static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(product0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// One stream of random numbers, f(seed, step, site, index): it has no state, so any order and any number of
/// threads draw the same numbers.
struct RandomStream {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t site = 0;  ///< which tensor or purpose; see `site_hash`

  [[nodiscard]] HALFSCOPE_HD constexpr RandomBlock block(std::uint64_t index) const {
    return philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), step, site},
                  static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
  }
  /// 32 random bits for element `index`: four consecutive elements share one block.
  [[nodiscard]] HALFSCOPE_HD constexpr std::uint32_t bits(std::uint64_t index) const {
    return block(index / 4)[index % 4];
  }
  /// Uniform on [0, 1), multiples of 2^-24.
  [[nodiscard]] HALFSCOPE_HD constexpr float uniform(std::uint64_t index) const {
    return static_cast<float>(bits(index) >> 8) * 0x1p-24f;
  }
};

/// FNV-1a of a tensor's name: the `site` of its stream.
constexpr std::uint32_t site_hash(const char* text, std::size_t length) {
  std::uint32_t hash = 2166136261u;
  for (std::size_t i = 0; i < length; ++i) hash = (hash ^ static_cast<unsigned char>(text[i])) * 16777619u;
  return hash;
}

/// `hash` after FNV-1a has gone on over the four bytes of `number`.
constexpr std::uint32_t site_hash_on(std::uint32_t hash, std::int32_t number) {
  for (int byte = 0; byte < 4; ++byte)
    hash = (hash ^ (static_cast<std::uint32_t>(number) >> (8 * byte) & 0xFFu)) * 16777619u;
  return hash;
}

}  // namespace halfscope
