// One function for each type of GGUF's blocks, in FP32 as the format's reference rounds: scale times code,
// then less the minimum.
#include <halfscope/io/layouts/detail/gguf_decoders.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <halfscope/format/encoding.hpp>
#include <halfscope/format/formats.hpp>

namespace halfscope {
namespace {

using Bytes = const std::byte*;

constexpr int super_block = 256;

unsigned byte_at(Bytes bytes, int i) {
  return std::to_integer<unsigned>(bytes[i]);
}

float half_at(Bytes bytes, int i) {
  return decode(byte_at(bytes, i) | byte_at(bytes, i + 1) << 8, fp16);
}

float signed_byte(Bytes bytes, int i) {
  return static_cast<float>(static_cast<std::int8_t>(byte_at(bytes, i)));
}

/// Element i of 32 whose low nibbles come before the high ones.
unsigned nibble_of_32(Bytes codes, int i) {
  return byte_at(codes, i % 16) >> (i / 16 * 4) & 15u;
}

/// Bit i of a run of bytes.
unsigned bit_at(Bytes bytes, int i) {
  return byte_at(bytes, i / 8) >> (i % 8) & 1u;
}

bool never(Bytes) {
  return false;
}

void decode_q4_0(Bytes block, float* values) {
  const float d = half_at(block, 0);
  for (int i = 0; i < 32; ++i) values[i] = d * (static_cast<float>(nibble_of_32(block + 2, i)) - 8);
}

void decode_q4_1(Bytes block, float* values) {
  const float d = half_at(block, 0), m = half_at(block, 2);
  for (int i = 0; i < 32; ++i) values[i] = d * static_cast<float>(nibble_of_32(block + 4, i)) + m;
}

void decode_q5_0(Bytes block, float* values) {
  const float d = half_at(block, 0);
  for (int i = 0; i < 32; ++i) {
    const unsigned q = nibble_of_32(block + 6, i) | bit_at(block + 2, i) << 4;
    values[i] = d * (static_cast<float>(q) - 16);
  }
}

void decode_q5_1(Bytes block, float* values) {
  const float d = half_at(block, 0), m = half_at(block, 2);
  for (int i = 0; i < 32; ++i) {
    const unsigned q = nibble_of_32(block + 8, i) | bit_at(block + 4, i) << 4;
    values[i] = d * static_cast<float>(q) + m;
  }
}

void decode_q8_0(Bytes block, float* values) {
  const float d = half_at(block, 0);
  for (int i = 0; i < 32; ++i) values[i] = signed_byte(block + 2, i) * d;
}

/// Two bits of element i of 256: 128 elements share 32 bytes, 32 elements a pair of bits.
unsigned pair_of_bits(Bytes codes, int i) {
  return byte_at(codes, i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3u;
}

void decode_q2_k(Bytes block, float* values) {
  const Bytes scales = block, codes = block + 16;
  const float d = half_at(block, 80), dmin = half_at(block, 82);
  for (int i = 0; i < super_block; ++i) {
    const unsigned scale = byte_at(scales, i / 16);
    const float dl = d * static_cast<float>(scale & 15u), ml = dmin * static_cast<float>(scale >> 4);
    values[i] = dl * static_cast<float>(pair_of_bits(codes, i)) - ml;
  }
}

void decode_q3_k(Bytes block, float* values) {
  const Bytes high = block, codes = block + 32, scales = block + 96;
  const float d = half_at(block, 108);
  for (int i = 0; i < super_block; ++i) {
    const int group = i / 16;
    const unsigned low = byte_at(scales, group % 8) >> (group / 8 * 4) & 15u;
    const unsigned top = byte_at(scales, 8 + group % 4) >> (group / 4 * 2) & 3u;
    const float dl = d * (static_cast<float>(low | top << 4) - 32);
    const unsigned is_high = byte_at(high, i % 32) >> (i / 32) & 1u;
    values[i] = dl * (static_cast<float>(pair_of_bits(codes, i)) - (is_high == 0 ? 4.0f : 0.0f));
  }
}

/// Six bits of scale and of minimum of group i of 8, in 12 bytes.
struct ScaleAndMinimum {
  unsigned scale, minimum;
};
ScaleAndMinimum scale_and_minimum(Bytes packed, int i) {
  if (i < 4) return {byte_at(packed, i) & 63u, byte_at(packed, i + 4) & 63u};
  const unsigned low = byte_at(packed, i + 4);
  return {(low & 15u) | (byte_at(packed, i - 4) >> 2 & 0x30u), low >> 4 | (byte_at(packed, i) >> 2 & 0x30u)};
}

/// Q4_K, and Q5_K with a fifth bit of each element at `high`.
void decode_k(Bytes block, Bytes high, Bytes codes, float* values) {
  const float d = half_at(block, 0), dmin = half_at(block, 2);
  for (int group = 0; group < 8; ++group) {
    const auto [scale, minimum] = scale_and_minimum(block + 4, group);
    const float dl = d * static_cast<float>(scale), ml = dmin * static_cast<float>(minimum);
    for (int i = 0; i < 32; ++i) {
      unsigned q = byte_at(codes, group / 2 * 32 + i) >> (group % 2 * 4) & 15u;
      if (high != nullptr) q |= (byte_at(high, i) >> group & 1u) << 4;
      values[32 * group + i] = dl * static_cast<float>(q) - ml;
    }
  }
}

void decode_q4_k(Bytes block, float* values) {
  decode_k(block, nullptr, block + 16, values);
}

void decode_q5_k(Bytes block, float* values) {
  decode_k(block, block + 16, block + 48, values);
}

void decode_q6_k(Bytes block, float* values) {
  const Bytes low = block, high = block + 128, scales = block + 192;
  const float d = half_at(block, 208);
  for (int i = 0; i < super_block; ++i) {
    const unsigned four = byte_at(low, i / 128 * 64 + i % 64) >> (i % 128 / 64 * 4) & 15u;
    const unsigned q = four | pair_of_bits(high, i) << 4;
    values[i] = (d * signed_byte(scales, i / 16)) * (static_cast<float>(q) - 32);
  }
}

constexpr std::array<float, 16> uneven_numbers{-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

void decode_iq4_nl(Bytes block, float* values) {
  const float d = half_at(block, 0);
  for (int i = 0; i < 32; ++i) values[i] = d * uneven_numbers[nibble_of_32(block + 2, i)];
}

void decode_iq4_xs(Bytes block, float* values) {
  const float d = half_at(block, 0);
  const unsigned top = byte_at(block, 2) | byte_at(block, 3) << 8;
  for (int group = 0; group < 8; ++group) {
    const unsigned low = byte_at(block + 4, group / 2) >> (group % 2 * 4) & 15u;
    const float dl = d * (static_cast<float>(low | (top >> (2 * group) & 3u) << 4) - 32);
    for (int i = 0; i < 32; ++i)
      values[32 * group + i] = dl * uneven_numbers[nibble_of_32(block + 8 + 16 * group, i)];
  }
}

/// E2M1 doubled, as the format's tables have it: without a negative zero.
float doubled_fp4(unsigned code) {
  return 2 * decode(code, fp4_e2m1) + 0.0f;
}

void decode_mxfp4(Bytes block, float* values) {
  const float half_scale = std::ldexp(1.0f, static_cast<int>(byte_at(block, 0)) - 128);
  for (int i = 0; i < 32; ++i) values[i] = half_scale * doubled_fp4(nibble_of_32(block + 1, i));
}

bool is_nan_mxfp4(Bytes block) {
  return byte_at(block, 0) == 255;
}

/// Half of an E4M3 scale without a sign, as the runtime has it: NaN is 0, or with a sign bit 480.
float half_nvfp4_scale(unsigned code) {
  if (code == 0x7F) return 0;
  return (code & 0x7Fu) == 0x7F ? 240 : 0.5f * decode(code & 0x7Fu, fp8_e4m3);
}

void decode_nvfp4(Bytes block, float* values) {
  for (int group = 0; group < 4; ++group) {
    const float half_scale = half_nvfp4_scale(byte_at(block, group));
    for (int i = 0; i < 16; ++i) {
      const unsigned byte = byte_at(block + 4, 8 * group + i % 8);
      values[16 * group + i] = half_scale * doubled_fp4(byte >> (i / 8 * 4) & 15u);
    }
  }
}

bool is_nan_nvfp4(Bytes block) {
  return std::any_of(block, block + 4,
                     [](std::byte code) { return (code & std::byte{0x7F}) == std::byte{0x7F}; });
}

constexpr std::array gguf_decoders{
    GgufDecoder{"Q4_0", 32, 18, decode_q4_0, never},
    GgufDecoder{"Q4_1", 32, 20, decode_q4_1, never},
    GgufDecoder{"Q5_0", 32, 22, decode_q5_0, never},
    GgufDecoder{"Q5_1", 32, 24, decode_q5_1, never},
    GgufDecoder{"Q8_0", 32, 34, decode_q8_0, never},
    GgufDecoder{"Q2_K", 256, 84, decode_q2_k, never},
    GgufDecoder{"Q3_K", 256, 110, decode_q3_k, never},
    GgufDecoder{"Q4_K", 256, 144, decode_q4_k, never},
    GgufDecoder{"Q5_K", 256, 176, decode_q5_k, never},
    GgufDecoder{"Q6_K", 256, 210, decode_q6_k, never},
    GgufDecoder{"IQ4_NL", 32, 18, decode_iq4_nl, never},
    GgufDecoder{"IQ4_XS", 256, 136, decode_iq4_xs, never},
    GgufDecoder{"MXFP4", 32, 17, decode_mxfp4, is_nan_mxfp4},
    GgufDecoder{"NVFP4", 64, 36, decode_nvfp4, is_nan_nvfp4},
};

}  // namespace

const GgufDecoder* find_gguf_decoder(std::string_view name) {
  const auto* const found = std::ranges::find(gguf_decoders, name, &GgufDecoder::name);
  return found == gguf_decoders.end() ? nullptr : found;
}

}  // namespace halfscope
