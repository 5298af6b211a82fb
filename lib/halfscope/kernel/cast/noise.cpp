// Tile by tile, beside the numbers in the format that stay.
#include <halfscope/kernel/cast/noise.hpp>

#include <algorithm>
#include <array>
#include <limits>

#include <halfscope/core/parallel.hpp>
#include <halfscope/core/random.hpp>
#include <halfscope/kernel/cast/detail/noise_simd.hpp>
#include <halfscope/kernel/cast/round.hpp>

namespace halfscope {
namespace {

constexpr std::size_t noise_tile = 4096;

/// The first random number of a tile. Tiles share some by chance alone.
std::uint32_t first_of(std::uint64_t seed, std::size_t index) {
  return RandomStream{.seed = seed}.bits(4 * index);
}

void add_to_tile(std::span<float> values, const RelativeNoise& noise, std::uint32_t first) {
  std::array<float, noise_tile> rounded;
  const std::span held = std::span(rounded).first(values.size());
  if (noise.held) {
    round(values, held, {.format = *noise.held});
  } else {
    std::ranges::fill(held, std::numeric_limits<float>::quiet_NaN());
  }
  dispatch_isa([&]<Isa isa>() {
    add_noise_isa<isa>({values.data(), rounded.data(), values.size(), first, noise.amount});
  });
}

}  // namespace

void add_noise(std::span<float> values, const RelativeNoise& noise) {
  const std::size_t tiles = (values.size() + noise_tile - 1) / noise_tile;
  parallel_for(static_cast<std::int64_t>(tiles), [&](std::int64_t number) noexcept {
    const auto index = static_cast<std::size_t>(number);
    const std::size_t start = index * noise_tile;
    add_to_tile(values.subspan(start, std::min(noise_tile, values.size() - start)), noise,
                first_of(noise.seed, index));
  });
}

}  // namespace halfscope
