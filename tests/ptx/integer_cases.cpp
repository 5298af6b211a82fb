// Cases of the integer opcodes: wrapped sums, both halves of products, quotients toward zero, extremes by
// sign.
#include "tests/ptx/opcode_cases.hpp"

namespace halfscope::ptx {
namespace {

constexpr std::uint64_t m1 = ~std::uint64_t{0};                    // -1 in 64 bits
constexpr std::uint64_t low64 = std::uint64_t{1} << 63;            // the smallest number of s64
constexpr std::uint64_t m1_32 = 0xFFFF'FFFF, low32 = 0x8000'0000;  // -1 and the smallest number of s32
constexpr std::uint64_t m1_16 = 0xFFFF, low16 = 0x8000;            // -1 and the smallest number of s16

constexpr OpcodeCase table[] = {
    {"add.s16", {m1_16, 1}, 0},
    {"add.s16", {0x7FFF, 1}, low16},
    {"add.s32", {2, 3}, 5},
    {"add.s32", {0x7FFF'FFFF, 1}, low32},
    {"add.s32", {m1_32, 1}, 0},
    {"add.s64", {m1_32, 1}, 0x1'0000'0000},
    {"add.s64", {low64 - 1, 1}, low64},
    {"add.u64", {m1, 2}, 1},
    {"sub.s16", {0, 1}, m1_16},
    {"sub.s32", {low32, 1}, 0x7FFF'FFFF},
    {"sub.s32", {3, 5}, 0xFFFF'FFFE},
    {"sub.s64", {0, 1}, m1},
    {"sub.s64", {low64, 1}, low64 - 1},
    {"mul.lo.s16", {0x100, 0x101}, 0x100},
    {"mul.lo.s16", {m1_16, 7}, 0xFFF9},
    {"mul.lo.s32", {0x1'0001, 0x1'0001}, 0x2'0001},
    {"mul.lo.s32", {m1_32, m1_32}, 1},
    {"mul.lo.s64", {0x1'0000'0001, 0x1'0000'0001}, 0x2'0000'0001},
    {"mul.lo.s64", {m1, 3}, m1 - 2},
    {"mul.wide.u16", {m1_16, m1_16}, 0xFFFE'0001},
    {"mul.wide.s32", {m1_32, 2}, m1 - 1},
    {"mul.wide.s32", {low32, low32}, 0x4000'0000'0000'0000},
    {"mul.wide.u32", {m1_32, 2}, 0x1'FFFF'FFFE},
    {"mul.wide.u32", {m1_32, m1_32}, 0xFFFF'FFFE'0000'0001},
    {"mul.hi.s32", {m1_32, 2}, m1_32},
    {"mul.hi.s32", {low32, low32}, 0x4000'0000},
    {"mul.hi.u32", {m1_32, 2}, 1},
    {"mul.hi.u32", {m1_32, m1_32}, 0xFFFF'FFFE},
    {"mul.hi.u64", {m1, m1}, m1 - 1},
    {"mul.hi.u64", {low64, 4}, 2},
    {"mad.lo.s32", {3, 5, 7}, 22},
    {"mad.lo.s32", {low32, 2, 9}, 9},
    {"mad.lo.s32", {m1_32, 5, 5}, 0},
    {"mad.lo.s64", {low64, 2, 9}, 9},
    {"mad.wide.u32", {m1_32, m1_32, 1}, 0xFFFF'FFFE'0000'0002},
    {"div.s32", {0xFFFF'FFF9, 2}, 0xFFFF'FFFD},  // -7 / 2 = -3
    {"div.s32", {low32, m1_32}, low32},
    {"div.s64", {m1 - 6, 2}, m1 - 2},
    {"div.s64", {7, m1 - 1}, m1 - 2},
    {"div.s64", {low64, m1}, low64},
    {"div.u32", {m1_32, 2}, 0x7FFF'FFFF},
    {"div.u32", {6, 7}, 0},
    {"div.u64", {m1, 3}, 0x5555'5555'5555'5555},
    {"rem.s32", {0xFFFF'FFF9, 2}, m1_32},  // the sign of the dividend
    {"rem.s32", {low32, m1_32}, 0},
    {"rem.s64", {m1 - 6, 2}, m1},
    {"rem.s64", {7, m1 - 1}, 1},
    {"rem.s64", {low64, m1}, 0},
    {"rem.u32", {m1_32, 10}, 5},
    {"rem.u64", {m1, 10}, 5},
    {"min.s16", {m1_16, 1}, m1_16},
    {"min.u16", {m1_16, 1}, 1},
    {"min.s32", {m1_32, 1}, m1_32},
    {"min.s32", {1, low32}, low32},
    {"min.u32", {m1_32, 1}, 1},
    {"min.s64", {m1, 1}, m1},
    {"min.s64", {1, low64}, low64},
    {"min.u64", {m1, 1}, 1},
    {"max.s16", {m1_16, 1}, 1},
    {"max.u16", {m1_16, 1}, m1_16},
    {"max.s32", {m1_32, 1}, 1},
    {"max.s32", {low32, m1_32}, m1_32},
    {"max.u32", {m1_32, 1}, m1_32},
    {"max.s64", {m1, 1}, 1},
    {"max.s64", {low64, m1}, m1},
    {"max.u64", {m1, 1}, m1},
    {"neg.s16", {1}, m1_16},
    {"neg.s32", {5}, 0xFFFF'FFFB},
    {"neg.s32", {low32}, low32},
    {"neg.s64", {1}, m1},
    {"neg.s64", {low64}, low64},
    {"abs.s32", {0xFFFF'FFFB}, 5},
    {"abs.s32", {5}, 5},
    {"abs.s32", {low32}, low32},
    {"abs.s64", {m1 - 4}, 5},
    {"abs.s64", {low64}, low64},
};

}  // namespace

std::span<const OpcodeCase> integer_cases() {
  return table;
}

}  // namespace halfscope::ptx
