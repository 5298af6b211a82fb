// Cases of single precision: ties, signed zeros, subnormals, overflow, infinities, NaNs, directions.
#include "tests/ptx/opcode_cases.hpp"

namespace halfscope::ptx {
namespace {

// Bits by the number that they stand for.
constexpr std::uint64_t zero = 0, minus_zero = 0x8000'0000, one = 0x3F80'0000, minus_one = 0xBF80'0000;
constexpr std::uint64_t two = 0x4000'0000, three = 0x4040'0000, half = 0x3F00'0000, next_one = 0x3F80'0001;
constexpr std::uint64_t inf = 0x7F80'0000, minus_inf = 0xFF80'0000, largest = 0x7F7F'FFFF;
constexpr std::uint64_t lowest = 0xFF7F'FFFF, smallest_normal = 0x0080'0000;
constexpr std::uint64_t tie = 0x3380'0000;   // 2^-24, half an ulp of one
constexpr std::uint64_t tiny = 0x3080'0000;  // 2^-30
constexpr std::uint64_t minus_tiny = 0xB080'0000;
constexpr std::uint64_t nan = 0x7FC0'1234, signalling = 0x7F80'0001, negative_nan = 0xFFC0'0000;
constexpr std::uint64_t gpu_nan = 0x7FFF'FFFF;

constexpr OpcodeCase table[] = {
    {"add.rn.f32", {one, two}, three},
    {"add.rn.f32", {one, tie}, one},
    {"add.rn.f32", {next_one, tie}, 0x3F80'0002},
    {"add.rn.f32", {1, 1}, 2},
    {"add.rn.f32", {minus_zero, minus_zero}, minus_zero},
    {"add.rn.f32", {one, minus_one}, zero},
    {"add.rn.f32", {largest, largest}, inf},
    {"add.rn.f32", {largest, 0x7300'0000}, inf},  // a tie at the largest
    {"add.rn.f32", {inf, minus_inf}, gpu_nan},
    {"add.rn.f32", {nan, one}, gpu_nan},
    {"add.rn.f32", {one, negative_nan}, gpu_nan},
    {"add.rn.f32", {signalling, one}, gpu_nan},
    {"add.f32", {one, tie}, one},
    {"add.f32", {inf, minus_inf}, gpu_nan},
    {"sub.rn.f32", {one, one}, zero},
    {"sub.rn.f32", {zero, zero}, zero},
    {"sub.rn.f32", {minus_zero, zero}, minus_zero},
    {"sub.rn.f32", {smallest_normal, 1}, 0x007F'FFFF},
    {"sub.rn.f32", {inf, inf}, gpu_nan},
    {"sub.f32", {three, one}, two},
    {"sub.f32", {nan, nan}, gpu_nan},
    {"mul.rn.f32", {three, half}, 0x3FC0'0000},
    {"mul.rn.f32", {smallest_normal, half}, 0x0040'0000},
    {"mul.rn.f32", {1, half}, zero},
    {"mul.rn.f32", {3, half}, 2},
    {"mul.rn.f32", {0x8000'0001, half}, minus_zero},
    {"mul.rn.f32", {next_one, next_one}, 0x3F80'0002},
    {"mul.rn.f32", {largest, two}, inf},
    {"mul.rn.f32", {zero, inf}, gpu_nan},
    {"mul.rn.f32", {minus_one, zero}, minus_zero},
    {"mul.f32", {minus_one, two}, 0xC000'0000},
    {"mul.f32", {zero, minus_inf}, gpu_nan},
    {"div.rn.f32", {one, three}, 0x3EAA'AAAB},
    {"div.rn.f32", {two, three}, 0x3F2A'AAAB},
    {"div.rn.f32", {one, zero}, inf},
    {"div.rn.f32", {one, minus_zero}, minus_inf},
    {"div.rn.f32", {smallest_normal, two}, 0x0040'0000},
    {"div.rn.f32", {zero, zero}, gpu_nan},
    {"div.rn.f32", {inf, inf}, gpu_nan},
    {"sqrt.rn.f32", {two}, 0x3FB5'04F3},
    {"sqrt.rn.f32", {1}, 0x1A35'04F3},
    {"sqrt.rn.f32", {minus_zero}, minus_zero},
    {"sqrt.rn.f32", {inf}, inf},
    {"sqrt.rn.f32", {minus_one}, gpu_nan},
    {"rcp.rn.f32", {three}, 0x3EAA'AAAB},
    {"rcp.rn.f32", {largest}, 0x0020'0000},
    {"rcp.rn.f32", {minus_zero}, minus_inf},
    {"rcp.rn.f32", {minus_inf}, minus_zero},
    {"rcp.rn.f32", {nan}, gpu_nan},
    {"fma.rn.f32", {next_one, next_one, 0xBF80'0002}, 0x2880'0000},  // 2^-46: rounded once
    {"fma.rn.f32", {one, one, tiny}, one},
    {"fma.rn.f32", {one, one, tie}, one},
    {"fma.rn.f32", {one, next_one, tie}, 0x3F80'0002},
    {"fma.rn.f32", {one, one, minus_one}, zero},
    {"fma.rn.f32", {largest, two, lowest}, largest},
    {"fma.rn.f32", {inf, zero, one}, gpu_nan},
    {"fma.rn.f32", {inf, one, minus_inf}, gpu_nan},
    {"fma.rm.f32", {one, one, tiny}, one},
    {"fma.rm.f32", {one, minus_one, minus_tiny}, 0xBF80'0001},
    {"fma.rm.f32", {one, one, minus_one}, minus_zero},
    {"fma.rm.f32", {largest, two, zero}, largest},
    {"fma.rm.f32", {lowest, two, zero}, minus_inf},
    {"fma.rm.f32", {1, half, zero}, zero},
    {"fma.rm.f32", {0x8000'0001, half, zero}, 0x8000'0001},
    {"fma.rm.f32", {nan, one, one}, gpu_nan},
    {"fma.rp.f32", {one, one, tiny}, next_one},
    {"fma.rp.f32", {one, minus_one, minus_tiny}, minus_one},
    {"fma.rp.f32", {one, one, minus_one}, zero},
    {"fma.rp.f32", {largest, two, zero}, inf},
    {"fma.rp.f32", {lowest, two, zero}, lowest},
    {"fma.rp.f32", {1, half, zero}, 1},
    {"fma.rp.f32", {0x8000'0001, half, zero}, minus_zero},
    {"fma.rp.f32", {zero, inf, one}, gpu_nan},
    {"fma.rz.f32", {one, one, tiny}, one},
    {"fma.rz.f32", {one, minus_one, minus_tiny}, minus_one},
    {"min.f32", {one, two}, one},
    {"min.f32", {zero, minus_zero}, minus_zero},
    {"min.f32", {minus_zero, zero}, minus_zero},
    {"min.f32", {nan, two}, two},
    {"min.f32", {two, nan}, two},
    {"min.f32", {nan, negative_nan}, gpu_nan},
    {"min.f32", {minus_inf, lowest}, minus_inf},
    {"max.f32", {one, two}, two},
    {"max.f32", {zero, minus_zero}, zero},
    {"max.f32", {minus_zero, zero}, zero},
    {"max.f32", {nan, minus_inf}, minus_inf},
    {"max.f32", {one, nan}, one},
    {"max.f32", {nan, nan}, gpu_nan},
    {"neg.f32", {zero}, minus_zero},
    {"neg.f32", {minus_inf}, inf},
    {"neg.f32", {1}, 0x8000'0001},
    {"abs.f32", {minus_zero}, zero},
    {"abs.f32", {minus_one}, one},
    {"abs.f32", {minus_inf}, inf},
};

}  // namespace

std::span<const OpcodeCase> float_cases() {
  return table;
}

}  // namespace halfscope::ptx
