// The header of a safetensors file: which tensors lie where in its data.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/core/dtype.hpp>
#include <halfscope/device/array.hpp>

namespace halfscope {

/// A dtype of the format (huggingface/safetensors, enum Dtype), and what reads it.
struct SafetensorsType {
  std::string_view name;
  unsigned bits;                ///< bits of an element
  std::optional<DType> stored;  ///< nothing: not a floating-point type that halfscope reads
};

inline constexpr std::array safetensors_types{
    SafetensorsType{"F16", 16, DType::f16},
    SafetensorsType{"BF16", 16, DType::bf16},
    SafetensorsType{"F32", 32, DType::f32},
    SafetensorsType{"F64", 64, DType::f64},
    SafetensorsType{"F8_E4M3", 8, DType::f8_e4m3},
    SafetensorsType{"F8_E5M2", 8, DType::f8_e5m2},
    SafetensorsType{"F8_E4M3FNUZ", 8, {}},
    SafetensorsType{"F8_E5M2FNUZ", 8, {}},
    SafetensorsType{"F8_E8M0", 8, {}},
    SafetensorsType{"F6_E2M3", 6, {}},
    SafetensorsType{"F6_E3M2", 6, {}},
    SafetensorsType{"F4", 4, {}},
    SafetensorsType{"C64", 64, {}},
    SafetensorsType{"BOOL", 8, {}},
    SafetensorsType{"I8", 8, {}},
    SafetensorsType{"U8", 8, {}},
    SafetensorsType{"I16", 16, {}},
    SafetensorsType{"U16", 16, {}},
    SafetensorsType{"I32", 32, {}},
    SafetensorsType{"U32", 32, {}},
    SafetensorsType{"I64", 64, {}},
    SafetensorsType{"U64", 64, {}},
};

/// A tensor as the header describes it; begin and end count bytes from the start of the data.
struct SafetensorsEntry {
  std::string name;
  SafetensorsType type;
  Shape shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<SafetensorsEntry> tensors;  ///< in the order of their data
};

inline constexpr std::size_t safetensors_length_bytes = 8;  ///< the header's length, which opens the file
inline constexpr std::string_view safetensors_metadata_key = "__metadata__";  ///< the one that is no tensor

/// Bytes of the header, from the file's first bytes (8, or all of a shorter file) and its size. Throws
/// InvalidArgument; `source` names the file in messages, here and below.
[[nodiscard]] std::uint64_t safetensors_header_length(std::string_view first_bytes, std::uint64_t file_size,
                                                      std::string_view source);

/// Parses the header's `text`, in memory that is a few times its size at most: a tensor or the metadata may
/// have most_member_values values (json_members.hpp). Throws InvalidArgument unless every dtype is known and
/// the tensors fill the `data_size` bytes that follow the header without gap, overlap or rest.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_size,
                                                         std::string_view source);

}  // namespace halfscope
