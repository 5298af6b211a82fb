// The formats that have a name of their own: one line per format.
#pragma once

#include <array>
#include <string_view>

#include <halfscope/format/formats.hpp>

namespace halfscope {

struct NamedFormat {
  std::string_view name;
  FloatFormat format;
  std::string_view summary;
};

inline constexpr std::array format_catalogue{
    NamedFormat{"fp32", fp32, "IEEE 754 binary32"},
    NamedFormat{"tf32", tf32, "NVIDIA TensorFloat-32: FP32's range, FP16's precision"},
    NamedFormat{"fp16", fp16, "IEEE 754 binary16"},
    NamedFormat{"bf16", bf16, "bfloat16: FP32's range, 8 bits of precision"},
    NamedFormat{"fp8_e4m3", fp8_e4m3, "OCP 8-bit E4M3: largest number 448, NaN but no infinity"},
    NamedFormat{"fp8_e5m2", fp8_e5m2, "OCP 8-bit E5M2: IEEE specials"},
};

/// Other frameworks' names, which are read and never printed.
struct FormatAlias {
  std::string_view alias;
  FloatFormat format;
};
inline constexpr std::array format_aliases{FormatAlias{"float32", fp32}, FormatAlias{"float16", fp16},
                                           FormatAlias{"bfloat16", bf16}};

}  // namespace halfscope
