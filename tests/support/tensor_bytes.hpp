// The bytes of tensor files, written down from the formats' descriptions and not with the code under test.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace halfscope {

/// The memory of `values`: little-endian elements.
template <typename T>
[[nodiscard]] std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// The `width` lowest bytes of `value`, lowest first.
[[nodiscard]] inline std::string little_endian(std::uint64_t value, std::size_t width) {
  return {reinterpret_cast<const char*>(&value), width};
}

/// Length, header, data.
[[nodiscard]] inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
  return little_endian(header.size(), 8) + std::string(header) + std::string(data);
}

/// An .npy array of format version `major`.0, whose header is `dictionary`.
[[nodiscard]] inline std::string npy_with_header(std::string_view dictionary, std::string_view data,
                                                 char major = 1) {
  return "\x93NUMPY" + std::string{major, '\0'} + little_endian(dictionary.size(), major == 1 ? 2 : 4) +
         std::string(dictionary) + std::string(data);
}

/// An .npy array as NumPy writes it, up to the padding; `shape` as in "(2, 3)".
[[nodiscard]] inline std::string npy_bytes(std::string_view descr, std::string_view shape,
                                           std::string_view data) {
  return npy_with_header("{'descr': '" + std::string(descr) +
                             "', 'fortran_order': False, 'shape': " + std::string(shape) + ", }\n",
                         data);
}

}  // namespace halfscope
