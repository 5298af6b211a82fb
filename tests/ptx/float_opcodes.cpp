// Floating-point opcodes: correctly rounded, subnormals kept.
// Source: PTX ISA, chapter "Floating Point Instructions".
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include <halfscope/arithmetic/operations.hpp>

#include "tests/ptx/action.hpp"
#include "tests/ptx/nan.hpp"

namespace halfscope::ptx {
namespace {

// Nearest even is the host's own rounding; it is never changed.
template <typename T>
T add(T a, T b) {
  return canonical(a + b);
}
template <typename T>
T sub(T a, T b) {
  return canonical(a - b);
}
template <typename T>
T mul(T a, T b) {
  return canonical(a * b);
}
template <typename T>
T div(T a, T b) {
  return canonical(a / b);
}
template <typename T>
T sqrt(T a) {
  return canonical(std::sqrt(a));
}
template <typename T>
T rcp(T a) {
  return canonical(T{1} / a);
}
template <typename T>
T fma(T a, T b, T c) {
  return canonical(std::fma(a, b, c));
}
/// The other directions, in integers. An exact zero sum is -0 when rounding down, by IEEE 754 and here.
template <Rounding rounding>
f32 fma_towards(f32 a, f32 b, f32 c) {
  return canonical(halfscope::fma(a, b, c, {.format = fp32, .rounding = rounding}).value);
}

template <typename T>
T nan_of();
template <>
f32 nan_of() {
  return std::bit_cast<f32>(canonical_nan_f32);
}
template <>
f64 nan_of() {
  return std::bit_cast<f64>(canonical_nan_f64);
}

/// The number where one operand is NaN; -0 is smaller than +0.
template <typename T>
T min(T a, T b) {
  if (std::isnan(a)) return std::isnan(b) ? nan_of<T>() : b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <typename T>
T max(T a, T b) {
  if (std::isnan(a)) return std::isnan(b) ? nan_of<T>() : b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}

// The sign bit alone, also of a NaN, for which the ISA promises nothing.
f32 neg_f32(f32 a) {
  return std::bit_cast<f32>(std::bit_cast<u32>(a) ^ 0x8000'0000u);
}
f64 neg_f64(f64 a) {
  return std::bit_cast<f64>(std::bit_cast<u64>(a) ^ (u64{1} << 63));
}
f32 abs_f32(f32 a) {
  return std::bit_cast<f32>(std::bit_cast<u32>(a) & ~0x8000'0000u);
}
f64 abs_f64(f64 a) {
  return std::bit_cast<f64>(std::bit_cast<u64>(a) & ~(u64{1} << 63));
}

const std::array table{
    Opcode{"add.rn.f32", pure<add<f32>>()},
    Opcode{"add.f32", pure<add<f32>>()},
    Opcode{"add.rn.f64", pure<add<f64>>()},
    Opcode{"add.f64", pure<add<f64>>()},
    Opcode{"sub.rn.f32", pure<sub<f32>>()},
    Opcode{"sub.f32", pure<sub<f32>>()},
    Opcode{"sub.rn.f64", pure<sub<f64>>()},
    Opcode{"sub.f64", pure<sub<f64>>()},
    Opcode{"mul.rn.f32", pure<mul<f32>>()},
    Opcode{"mul.f32", pure<mul<f32>>()},
    Opcode{"mul.rn.f64", pure<mul<f64>>()},
    Opcode{"mul.f64", pure<mul<f64>>()},
    Opcode{"div.rn.f32", pure<div<f32>>()},
    Opcode{"div.rn.f64", pure<div<f64>>()},
    Opcode{"sqrt.rn.f32", pure<sqrt<f32>>()},
    Opcode{"sqrt.rn.f64", pure<sqrt<f64>>()},
    Opcode{"rcp.rn.f32", pure<rcp<f32>>()},
    Opcode{"rcp.rn.f64", pure<rcp<f64>>()},
    Opcode{"fma.rn.f32", pure<fma<f32>>()},
    Opcode{"fma.rn.f64", pure<fma<f64>>()},
    Opcode{"fma.rm.f32", pure<fma_towards<Rounding::down>>()},
    Opcode{"fma.rp.f32", pure<fma_towards<Rounding::up>>()},
    Opcode{"fma.rz.f32", pure<fma_towards<Rounding::toward_zero>>()},
    Opcode{"min.f32", pure<min<f32>>()},
    Opcode{"min.f64", pure<min<f64>>()},
    Opcode{"max.f32", pure<max<f32>>()},
    Opcode{"max.f64", pure<max<f64>>()},
    Opcode{"neg.f32", pure<neg_f32>()},
    Opcode{"neg.f64", pure<neg_f64>()},
    Opcode{"abs.f32", pure<abs_f32>()},
    Opcode{"abs.f64", pure<abs_f64>()},
};

}  // namespace

std::span<const Opcode> float_opcodes() {
  return table;
}

}  // namespace halfscope::ptx
