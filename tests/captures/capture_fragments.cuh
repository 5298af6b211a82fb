// A thread's part of a captured tile, by the manual's layout of fragments.
#pragma once

#include <cstdint>

namespace halfscope {

#ifdef __CUDA_ARCH__
/// A register of `packed` neighbouring terms from `codes` on, `stride` apart.
template <int packed>
__device__ std::uint32_t packed_codes(const std::uint32_t* codes, std::int64_t stride) {
  std::uint32_t word = 0;
  for (int j = 0; j < packed; ++j) word |= codes[j * stride] << (j * (32 / packed));
  return word;
}

/// Sums of (.., 8) elements: columns `pair` and `pair` + 1 of `row`, then of `row` + 8; four floats, or two
/// registers of FP16 pairs.
template <typename Register, int registers>
__device__ void load_sums(const std::uint32_t* c, int row, int pair, Register (&sums)[registers]) {
  for (int i = 0; i < registers; ++i) {
    if constexpr (registers == 4) {
      sums[i] = __uint_as_float(c[(row + i / 2 * 8) * 8 + pair + i % 2]);
    } else {
      sums[i] = packed_codes<2>(c + (row + i * 8) * 8 + pair, 1);
    }
  }
}
template <typename Register, int registers>
__device__ void store_sums(const Register (&sums)[registers], int row, int pair, std::uint32_t* results) {
  for (int i = 0; i < 4; ++i) {
    const int at = (row + i / 2 * 8) * 8 + pair + i % 2;
    if constexpr (registers == 4) {
      results[at] = __float_as_uint(sums[i]);
    } else {
      results[at] = sums[i / 2] >> (i % 2 * 16) & 0xFFFFu;
    }
  }
}
#endif

}  // namespace halfscope
