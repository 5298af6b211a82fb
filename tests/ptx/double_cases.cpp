// Cases of double precision: ties, signed zeros, subnormals, overflow, infinities.
#include "tests/ptx/opcode_cases.hpp"

namespace halfscope::ptx {
namespace {

constexpr std::uint64_t zero = 0, minus_zero = std::uint64_t{1} << 63;
constexpr std::uint64_t one = 0x3FF0'0000'0000'0000, minus_one = one + minus_zero, next_one = one + 1;
constexpr std::uint64_t two = 0x4000'0000'0000'0000, three = 0x4008'0000'0000'0000,
                        half = 0x3FE0'0000'0000'0000;
constexpr std::uint64_t inf = 0x7FF0'0000'0000'0000, minus_inf = inf + minus_zero, largest = inf - 1;
constexpr std::uint64_t tie = 0x3CA0'0000'0000'0000;  // 2^-53, half an ulp of one
constexpr std::uint64_t nan = 0x7FF8'0000'0000'0000;

constexpr OpcodeCase table[] = {
    {"add.rn.f64", {one, tie}, one},
    {"add.rn.f64", {next_one, tie}, one + 2},
    {"add.rn.f64", {1, 1}, 2},
    {"add.rn.f64", {minus_zero, minus_zero}, minus_zero},
    {"add.rn.f64", {largest, largest}, inf},
    {"add.f64", {one, two}, three},
    {"sub.rn.f64", {one, one}, zero},
    {"sub.rn.f64", {0x0010'0000'0000'0000, 1}, 0x000F'FFFF'FFFF'FFFF},
    {"sub.f64", {three, two}, one},
    {"mul.rn.f64", {1, half}, zero},
    {"mul.rn.f64", {3, half}, 2},
    {"mul.rn.f64", {next_one, next_one}, one + 2},
    {"mul.rn.f64", {minus_one, zero}, minus_zero},
    {"mul.f64", {largest, two}, inf},
    {"div.rn.f64", {one, three}, 0x3FD5'5555'5555'5555},
    {"div.rn.f64", {one, minus_zero}, minus_inf},
    {"div.rn.f64", {3, two}, 2},
    {"sqrt.rn.f64", {two}, 0x3FF6'A09E'667F'3BCD},
    {"sqrt.rn.f64", {minus_zero}, minus_zero},
    {"sqrt.rn.f64", {inf}, inf},
    {"rcp.rn.f64", {three}, 0x3FD5'5555'5555'5555},
    {"rcp.rn.f64", {minus_inf}, minus_zero},
    {"fma.rn.f64", {next_one, next_one, minus_one + 2}, 0x3970'0000'0000'0000},  // 2^-104: rounded once
    {"fma.rn.f64", {one, one, minus_one}, zero},
    {"min.f64", {zero, minus_zero}, minus_zero},
    {"min.f64", {nan, two}, two},
    {"min.f64", {one, two}, one},
    {"min.f64", {nan, nan}, nan},
    {"max.f64", {minus_zero, zero}, zero},
    {"max.f64", {two, nan}, two},
    {"max.f64", {one, two}, two},
    {"max.f64", {nan, nan}, nan},
    {"neg.f64", {zero}, minus_zero},
    {"neg.f64", {minus_inf}, inf},
    {"abs.f64", {minus_zero}, zero},
    {"abs.f64", {minus_one}, one},
};

}  // namespace

std::span<const OpcodeCase> double_cases() {
  return table;
}

}  // namespace halfscope::ptx
