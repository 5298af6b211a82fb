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
    NamedFormat{"fp8_e4m3fnuz", fp8_e4m3fnuz, "8-bit E4M3 of AMD's CDNA3: largest number 240, one zero"},
    NamedFormat{"fp8_e5m2fnuz", fp8_e5m2fnuz, "8-bit E5M2 of AMD's CDNA3: largest number 57344, one zero"},
    NamedFormat{"fp8_e4m3b11fnuz", fp8_e4m3b11fnuz, "8-bit E4M3 with bias 11: largest number 30, one zero"},
    NamedFormat{"fp6_e3m2", fp6_e3m2, "OCP 6-bit E3M2: largest number 28, finite"},
    NamedFormat{"fp6_e2m3", fp6_e2m3, "OCP 6-bit E2M3: largest number 7.5, finite"},
    NamedFormat{"fp4_e2m1", fp4_e2m1, "OCP 4-bit E2M1: largest number 6, finite"},
    NamedFormat{"e4m3", e4m3, "8-bit E4M3 with IEEE's specials: largest number 240; fp8_e4m3 has 448"},
    NamedFormat{"e3m4", e3m4, "8-bit E3M4 with IEEE's specials: largest number 15.5"},
};

/// OCP's formats, of whose bits IEEE's rules make another format: e4m3 is not fp8_e4m3.
inline constexpr std::array ocp_small_formats{fp8_e4m3, fp6_e3m2, fp6_e2m3, fp4_e2m1};

/// Other frameworks' names, which are read and never printed.
struct FormatAlias {
  std::string_view alias;
  FloatFormat format;
};
inline constexpr std::array format_aliases{
    FormatAlias{"float32", fp32},
    FormatAlias{"float16", fp16},
    FormatAlias{"bfloat16", bf16},
    FormatAlias{"F32", fp32},
    FormatAlias{"F16", fp16},
    FormatAlias{"BF16", bf16},
    FormatAlias{"float8_e4m3fn", fp8_e4m3},
    FormatAlias{"F8_E4M3", fp8_e4m3},
    FormatAlias{"float8_e5m2", fp8_e5m2},
    FormatAlias{"F8_E5M2", fp8_e5m2},
    FormatAlias{"float8_e4m3fnuz", fp8_e4m3fnuz},
    FormatAlias{"F8_E4M3FNUZ", fp8_e4m3fnuz},
    FormatAlias{"float8_e5m2fnuz", fp8_e5m2fnuz},
    FormatAlias{"F8_E5M2FNUZ", fp8_e5m2fnuz},
    FormatAlias{"float8_e4m3b11fnuz", fp8_e4m3b11fnuz},
    FormatAlias{"float8_e4m3", e4m3},
    FormatAlias{"float8_e3m4", e3m4},
    FormatAlias{"float6_e3m2fn", fp6_e3m2},
    FormatAlias{"F6_E3M2", fp6_e3m2},
    FormatAlias{"float6_e2m3fn", fp6_e2m3},
    FormatAlias{"F6_E2M3", fp6_e2m3},
    FormatAlias{"float4_e2m1fn", fp4_e2m1},
    FormatAlias{"float4_e2m1fn_x2", fp4_e2m1},
    FormatAlias{"F4", fp4_e2m1},
};

}  // namespace halfscope
