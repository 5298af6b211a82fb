// The element types of tensor files, as they lie in the file.
#pragma once

#include <cstddef>
#include <cstdint>

#include <halfscope/core/names.hpp>

namespace halfscope {

/// How a file stores an element; the names are those of `--dtype`.
enum class StoredType : std::uint8_t { f16, bf16, f32, f64, f8_e4m3, f8_e5m2 };
template <>
inline constexpr std::array<std::string_view, 6> enum_names<StoredType>{"f16", "bf16",    "f32",
                                                                        "f64", "f8_e4m3", "f8_e5m2"};

[[nodiscard]] constexpr std::size_t bytes_per_element(StoredType type) {
  constexpr std::array<std::size_t, enum_names<StoredType>.size()> bytes{2, 2, 4, 8, 1, 1};
  return bytes.at(static_cast<std::size_t>(type));
}

}  // namespace halfscope
