// GGUF files written from the format's description.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/tensor_bytes.hpp"

namespace halfscope {

inline std::string gguf_text(std::string_view value) {
  return little_endian(value.size(), 8) + std::string(value);
}

/// The description of a tensor whose extents are given from the fastest to the slowest.
inline std::string gguf_tensor(std::string_view name, const std::vector<std::uint64_t>& extents,
                               std::uint32_t type, std::uint64_t offset) {
  std::string bytes = gguf_text(name) + little_endian(extents.size(), 4);
  for (const std::uint64_t extent : extents) bytes += little_endian(extent, 8);
  return bytes + little_endian(type, 4) + little_endian(offset, 8);
}

/// A file of version 3 with a text, a list of texts, a list of numbers and an alignment of 16 as metadata.
inline std::string gguf_bytes(const std::vector<std::string>& tensors, std::string_view data) {
  constexpr std::size_t alignment = 16;
  std::string bytes = "GGUF" + little_endian(3, 4) + little_endian(tensors.size(), 8) + little_endian(4, 8) +
                      gguf_text("general.name") + little_endian(8, 4) + gguf_text("a model") +
                      gguf_text("tokens") + little_endian(9, 4) + little_endian(8, 4) + little_endian(2, 8) +
                      gguf_text("the") + gguf_text("cat") + gguf_text("scores") + little_endian(9, 4) +
                      little_endian(6, 4) + little_endian(2, 8) + std::string(8, '\0') +
                      gguf_text("general.alignment") + little_endian(4, 4) + little_endian(alignment, 4);
  for (const std::string& tensor : tensors) bytes += tensor;
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
  return bytes + std::string(data);
}

}  // namespace halfscope
