// Cases of conversions: widths and signs, ties, overflow, saturation, NaN.
#include "tests/ptx/opcode_cases.hpp"

namespace halfscope::ptx {
namespace {

constexpr std::uint64_t ones = ~std::uint64_t{0};
constexpr std::uint64_t inf = 0x7F80'0000, minus_inf = 0xFF80'0000, nan = 0x7FC0'1234,
                        minus_nan = 0xFFC0'0000;

constexpr OpcodeCase table[] = {
    {"cvt.u16.u8", {0x1234}, 0x34},
    {"cvt.u16.u8", {0x1280}, 0x80},
    {"cvt.s16.s8", {0x1280}, 0xFF80},
    {"cvt.s16.s8", {0x127F}, 0x7F},
    {"cvt.u32.u8", {0x1280}, 0x80},
    {"cvt.s32.s8", {0x1280}, 0xFFFF'FF80},
    {"cvt.u64.u8", {0x1280}, 0x80},
    {"cvt.u32.u16", {0x8000}, 0x8000},
    {"cvt.s32.s16", {0x8000}, 0xFFFF'8000},
    {"cvt.u64.u16", {0x8000}, 0x8000},
    {"cvt.u16.u32", {0x1'2345}, 0x2345},
    {"cvt.u16.u64", {0x1'2345}, 0x2345},
    {"cvt.u32.u64", {ones - 1}, 0xFFFF'FFFE},
    {"cvt.u64.u32", {0x8000'0000}, 0x8000'0000},
    {"cvt.s64.s32", {0x8000'0000}, 0xFFFF'FFFF'8000'0000},
    {"cvt.rn.f32.s16", {0xFFFF}, 0xBF80'0000},
    {"cvt.rn.f32.s32", {0xFFFF'FFFF}, 0xBF80'0000},
    {"cvt.rn.f32.s32", {0x0100'0001}, 0x4B80'0000},  // 2^24 + 1: to even
    {"cvt.rn.f32.s32", {0x0100'0003}, 0x4B80'0002},
    {"cvt.rn.f32.s32", {0x7FFF'FFFF}, 0x4F00'0000},
    {"cvt.rn.f32.u32", {0xFFFF'FFFF}, 0x4F80'0000},
    {"cvt.rn.f32.s64", {ones}, 0xBF80'0000},
    {"cvt.rn.f32.s64", {0x8000'0080'0000'0000}, 0xDEFF'FFFF},
    {"cvt.rn.f32.u64", {ones}, 0x5F80'0000},
    {"cvt.rn.f64.s32", {0x8000'0000}, 0xC1E0'0000'0000'0000},
    {"cvt.rn.f64.u32", {0x8000'0000}, 0x41E0'0000'0000'0000},
    {"cvt.rn.f64.s64", {ones}, 0xBFF0'0000'0000'0000},
    {"cvt.rn.f64.s64", {0x20'0000'0000'0001}, 0x4340'0000'0000'0000},  // 2^53 + 1: to even
    {"cvt.rn.f64.u64", {ones}, 0x43F0'0000'0000'0000},
    {"cvt.rn.f64.u64", {0x20'0000'0000'0003}, 0x4340'0000'0000'0002},
    {"cvt.f64.f32", {0x3F80'0000}, 0x3FF0'0000'0000'0000},
    {"cvt.f64.f32", {1}, 0x36A0'0000'0000'0000},
    {"cvt.f64.f32", {minus_inf}, 0xFFF0'0000'0000'0000},
    {"cvt.f64.f32", {0x8000'0000}, 0x8000'0000'0000'0000},
    {"cvt.rn.f32.f64", {0x3FF0'0000'1000'0000}, 0x3F80'0000},  // a tie, to even
    {"cvt.rn.f32.f64", {0x3FF0'0000'3000'0000}, 0x3F80'0002},
    {"cvt.rn.f32.f64", {0x3FF0'0000'1000'0001}, 0x3F80'0001},
    {"cvt.rn.f32.f64", {0x7FEF'FFFF'FFFF'FFFF}, inf},
    {"cvt.rn.f32.f64", {0x8000'0000'0000'0001}, 0x8000'0000},
    {"cvt.rn.f32.f64", {0x7FF8'0000'0000'0000}, 0x7FFF'FFFF},
    {"cvt.f32.f16", {0x3C00}, 0x3F80'0000},
    {"cvt.f32.f16", {0x0001}, 0x3380'0000},
    {"cvt.f32.f16", {0x8000}, 0x8000'0000},
    {"cvt.f32.f16", {0x7BFF}, 0x477F'E000},
    {"cvt.f32.f16", {0xFC00}, minus_inf},
    {"cvt.f32.f16", {0x7E00}, 0x7FFF'FFFF},
    {"cvt.rn.f16.f32", {0x3F80'0000}, 0x3C00},
    {"cvt.rn.f16.f32", {0x3F80'1000}, 0x3C00},  // a tie, to even
    {"cvt.rn.f16.f32", {0x3F80'3000}, 0x3C02},
    {"cvt.rn.f16.f32", {0x3F80'1001}, 0x3C01},
    {"cvt.rn.f16.f32", {0x477F'EFFF}, 0x7BFF},
    {"cvt.rn.f16.f32", {0x477F'F000}, 0x7C00},  // 65520
    {"cvt.rn.f16.f32", {0x3300'0000}, 0},       // 2^-25: a tie
    {"cvt.rn.f16.f32", {0x3300'0001}, 1},
    {"cvt.rn.f16.f32", {0xB300'0000}, 0x8000},
    {"cvt.rn.f16.f32", {minus_inf}, 0xFC00},
    {"cvt.rn.f16.f32", {nan}, 0x7FFF},
    {"cvt.rn.f16.f32", {minus_nan}, 0x7FFF},
    {"cvt.rn.bf16.f32", {0x3F80'8000}, 0x3F80},  // a tie, to even
    {"cvt.rn.bf16.f32", {0x3F81'8000}, 0x3F82},
    {"cvt.rn.bf16.f32", {0x3F80'8001}, 0x3F81},
    {"cvt.rn.bf16.f32", {0x7F7F'FFFF}, 0x7F80},
    {"cvt.rn.bf16.f32", {1}, 0},
    {"cvt.rn.bf16.f32", {0x8000'8000}, 0x8000},
    {"cvt.rn.bf16.f32", {minus_nan}, 0x7FFF},
    {"cvt.rni.s32.f32", {0x3F00'0000}, 0},            // 0.5
    {"cvt.rni.s32.f32", {0x3FC0'0000}, 2},            // 1.5
    {"cvt.rni.s32.f32", {0xC020'0000}, 0xFFFF'FFFE},  // -2.5
    {"cvt.rni.s32.f32", {nan}, 0},
    {"cvt.rni.s32.f32", {inf}, 0x7FFF'FFFF},
    {"cvt.rzi.s32.f32", {0xBFFF'FFFF}, 0xFFFF'FFFF},
    {"cvt.rzi.s32.f32", {minus_nan}, 0},
    {"cvt.rzi.s32.f32", {0x4F00'0000}, 0x7FFF'FFFF},
    {"cvt.rzi.s32.f32", {minus_inf}, 0x8000'0000},
    {"cvt.rmi.s32.f32", {0xBF80'0001}, 0xFFFF'FFFE},
    {"cvt.rmi.s32.f32", {0x3FFF'FFFF}, 1},
    {"cvt.rpi.s32.f32", {0x3F80'0001}, 2},
    {"cvt.rpi.s32.f32", {0xBFFF'FFFF}, 0xFFFF'FFFF},
    {"cvt.rzi.u32.f32", {0x4F7F'FFFF}, 0xFFFF'FF00},
    {"cvt.rzi.u32.f32", {0xBF80'0000}, 0},
    {"cvt.rzi.u32.f32", {inf}, 0xFFFF'FFFF},
    {"cvt.rzi.u32.f32", {nan}, 0},
    {"cvta.global.u64", {0x1234}, 0x1234},
    {"cvta.to.global.u64", {0x1234}, 0x1234},
    {"cvta.shared.u64", {0x10}, 0x0200'0000'0000'0010},
    {"cvta.to.shared.u64", {0x0200'0000'0000'0010}, 0x10},
    {"cvta.local.u64", {0x10}, 0x0300'0000'0000'0010},
    {"cvta.to.local.u64", {0x0300'0000'0000'0010}, 0x10},
};

}  // namespace

std::span<const OpcodeCase> convert_cases() {
  return table;
}

}  // namespace halfscope::ptx
