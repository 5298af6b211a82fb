// The numbers of one block of GGUF, type by type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace halfscope {

inline constexpr std::size_t largest_gguf_block = 256;

struct GgufDecoder {
  std::string_view name;
  std::int64_t elements, bytes;  ///< in a block
  void (*decode)(const std::byte* block, float* values);
  /// Whether the block has a scale that is NaN by its format, and a number by the runtime.
  bool (*has_nan_scale)(const std::byte* block);
};

/// Nothing for a type that is not read.
[[nodiscard]] const GgufDecoder* find_gguf_decoder(std::string_view name);

}  // namespace halfscope
