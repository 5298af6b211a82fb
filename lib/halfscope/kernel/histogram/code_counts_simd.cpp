// The loops that count codes, compiled once per instruction set.
#include <halfscope/kernel/histogram/detail/code_counts_simd.hpp>

#include <cstring>

namespace halfscope {
namespace {

constexpr std::size_t tile = 1024;  // words: few enough for 16-bit sums
/// Words whose places are found at a time: few enough for the processor to begin while the last are counted.
constexpr std::size_t strip = 256;
static_assert(strip % WordPlaces::zeros == 0, "zeros take turns across strips");

/// How many of `count` codes are those of -0.
template <typename Code>
std::uint16_t count_negative_zeros(const std::byte* codes, std::size_t count) {
  constexpr auto negative_zero = static_cast<Code>(Code{1} << (8 * sizeof(Code) - 1));
  std::uint16_t found = 0;
#pragma omp simd reduction(+ : found)
  for (std::size_t i = 0; i < count; ++i) {
    Code code;
    std::memcpy(&code, codes + i * sizeof code, sizeof code);
    found = static_cast<std::uint16_t>(found + (code == negative_zero ? 1 : 0));
  }
  return found;
}

/// Where in the table each word is counted.
void find_places(const std::byte* words, std::size_t count, std::uint16_t signs, std::uint16_t* out) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t word;
    std::memcpy(&word, words + i * sizeof word, sizeof word);
    const auto magnitude = static_cast<std::uint16_t>(word & ~signs);
    const auto zero = static_cast<std::uint16_t>(WordPlaces::magnitudes + i % WordPlaces::zeros);
    out[i] = magnitude == 0 ? zero : magnitude;
  }
}

void count_places(const std::uint16_t* places, std::size_t count, std::uint32_t* counts) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    std::uint64_t four;  // one load for all of them
    std::memcpy(&four, places + i, sizeof four);
    for (std::size_t j = 0; j < 4; ++j) ++counts[(four >> (16 * j)) & 0xFFFF];
  }
  for (; i < count; ++i) ++counts[places[i]];
}

}  // namespace

template <>
std::uint32_t count_words_isa<target_isa>(const std::byte* words, std::size_t count, std::size_t width,
                                          std::uint32_t* counts) {
  const std::uint16_t signs = width == 1 ? 0x8080 : 0x8000;
  std::uint32_t negative_zeros = 0;
  std::uint16_t places[strip];
  for (std::size_t start = 0; start < count; start += tile) {
    const std::size_t here = count - start < tile ? count - start : tile;
    const std::byte* const from = words + 2 * start;
    negative_zeros += width == 1 ? count_negative_zeros<std::uint8_t>(from, 2 * here)
                                 : count_negative_zeros<std::uint16_t>(from, here);
    for (std::size_t done = 0; done < here; done += strip) {
      const std::size_t words_left = here - done < strip ? here - done : strip;
      find_places(from + 2 * done, words_left, signs, places);
      count_places(places, words_left, counts);
    }
  }
  return negative_zeros;
}

}  // namespace halfscope
