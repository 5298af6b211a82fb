// Element types: of arrays in memory and of tensors in files.
#pragma once

#include <cstddef>
#include <cstdint>

#include <halfscope/core/host_device.hpp>
#include <halfscope/core/names.hpp>

namespace halfscope {

/// The type of a stored element; the names are those of `--dtype`. Arrays in memory have f32, and on the
/// device f16 or bf16 under native execution; the others occur in files.
enum class DType : std::uint8_t { f16, bf16, f32, f64, f8_e4m3, f8_e5m2 };
template <>
inline constexpr std::array<std::string_view, 6> enum_names<DType>{"f16", "bf16",    "f32",
                                                                   "f64", "f8_e4m3", "f8_e5m2"};

[[nodiscard]] HALFSCOPE_HD constexpr std::size_t bytes_per_element(DType type) {
  switch (type) {
    case DType::f64:
      return 8;
    case DType::f32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::f8_e4m3:
    case DType::f8_e5m2:
      break;
  }
  return 1;
}

}  // namespace halfscope
