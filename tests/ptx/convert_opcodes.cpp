// Conversions: between integers, between formats, and from one to the other.
// Source: PTX ISA, "cvt" and "cvta".
#include <array>
#include <cmath>
#include <limits>

#include <halfscope/format/encoding.hpp>
#include <halfscope/format/round.hpp>

#include "tests/ptx/action.hpp"
#include "tests/ptx/fault.hpp"
#include "tests/ptx/nan.hpp"

namespace halfscope::ptx {
namespace {

/// Registers may be wider than the types of a conversion: the low bits of the source count, the result
/// extends by its sign.
template <auto function>
constexpr Action conversion() {
  Action action = pure<function>();
  for (std::size_t i = 0; i < action.signature.size; ++i) action.signature.items[i].or_wider = true;
  return action;
}

/// Extends by the sign of From, or cuts off.
template <typename To, typename From>
To cvt_integer(From a) {
  return static_cast<To>(a);
}

/// To a float or a double, nearest even as the host rounds.
template <typename To, typename From>
To cvt_rn(From a) {
  return canonical(static_cast<To>(a));
}

f32 cvt_f32_f16(u16 a) {
  return canonical(decode(a, fp16));
}
template <const FloatFormat& format>
u16 cvt_rn_short(f32 a) {
  return code_of(round(a, {.format = format}), format);
}

enum class Direction : std::uint8_t { nearest_even, toward_zero, down, up };
template <Direction direction>
f32 to_integral(f32 a) {
  if (direction == Direction::toward_zero) return std::trunc(a);
  if (direction == Direction::down) return std::floor(a);
  if (direction == Direction::up) return std::ceil(a);
  return std::nearbyint(a);
}
/// NaN becomes zero; what lies beyond the integers becomes the nearest of them.
template <typename To, Direction direction>
To cvt_to_integer(f32 a) {
  if (std::isnan(a)) return 0;
  const f64 x = to_integral<direction>(a);
  constexpr auto low = static_cast<f64>(std::numeric_limits<To>::min());
  constexpr auto high = static_cast<f64>(std::numeric_limits<To>::max());
  if (x <= low) return std::numeric_limits<To>::min();
  if (x >= high) return std::numeric_limits<To>::max();
  return static_cast<To>(x);
}

// Generic addresses: shared and local memory appear in windows of their own, global memory as it is.
template <Space space>
constexpr u64 window = 0;
template <>
constexpr u64 window<Space::shared> = 0x0200'0000'0000'0000;
template <>
constexpr u64 window<Space::local> = 0x0300'0000'0000'0000;

template <Space space>
u64 to_generic(u64 a) {
  return a + window<space>;
}
template <Space space>
u64 from_generic(u64 a) {
  constexpr u64 base = window<space>;
  if (base != 0 && (a >> 32) != (base >> 32)) {
    throw Violation("a generic address is converted to a space that it does not lie in");
  }
  return a - base;
}

const std::array table{
    Opcode{"cvt.u16.u8", conversion<cvt_integer<u16, u8>>()},
    Opcode{"cvt.s16.s8", conversion<cvt_integer<s16, s8>>()},
    Opcode{"cvt.u32.u8", conversion<cvt_integer<u32, u8>>()},
    Opcode{"cvt.s32.s8", conversion<cvt_integer<s32, s8>>()},
    Opcode{"cvt.u32.u16", conversion<cvt_integer<u32, u16>>()},
    Opcode{"cvt.s32.s16", conversion<cvt_integer<s32, s16>>()},
    Opcode{"cvt.u64.u16", conversion<cvt_integer<u64, u16>>()},
    Opcode{"cvt.u16.u32", conversion<cvt_integer<u16, u32>>()},
    Opcode{"cvt.u16.u64", conversion<cvt_integer<u16, u64>>()},
    Opcode{"cvt.u32.u64", conversion<cvt_integer<u32, u64>>()},
    Opcode{"cvt.u64.u32", conversion<cvt_integer<u64, u32>>()},
    Opcode{"cvt.s64.s32", conversion<cvt_integer<s64, s32>>()},
    Opcode{"cvt.u64.u8", conversion<cvt_integer<u64, u8>>()},
    Opcode{"cvt.rn.f32.s16", conversion<cvt_rn<f32, s16>>()},
    Opcode{"cvt.rn.f32.s32", conversion<cvt_rn<f32, s32>>()},
    Opcode{"cvt.rn.f32.u32", conversion<cvt_rn<f32, u32>>()},
    Opcode{"cvt.rn.f32.s64", conversion<cvt_rn<f32, s64>>()},
    Opcode{"cvt.rn.f32.u64", conversion<cvt_rn<f32, u64>>()},
    Opcode{"cvt.rn.f64.s32", conversion<cvt_rn<f64, s32>>()},
    Opcode{"cvt.rn.f64.u32", conversion<cvt_rn<f64, u32>>()},
    Opcode{"cvt.rn.f64.s64", conversion<cvt_rn<f64, s64>>()},
    Opcode{"cvt.rn.f64.u64", conversion<cvt_rn<f64, u64>>()},
    Opcode{"cvt.f64.f32", conversion<cvt_rn<f64, f32>>()},
    Opcode{"cvt.rn.f32.f64", conversion<cvt_rn<f32, f64>>()},
    Opcode{"cvt.f32.f16", conversion<cvt_f32_f16>()},
    Opcode{"cvt.rn.f16.f32", conversion<cvt_rn_short<fp16>>()},
    Opcode{"cvt.rn.bf16.f32", conversion<cvt_rn_short<bf16>>()},
    Opcode{"cvt.rni.s32.f32", conversion<cvt_to_integer<s32, Direction::nearest_even>>()},
    Opcode{"cvt.rzi.s32.f32", conversion<cvt_to_integer<s32, Direction::toward_zero>>()},
    Opcode{"cvt.rmi.s32.f32", conversion<cvt_to_integer<s32, Direction::down>>()},
    Opcode{"cvt.rpi.s32.f32", conversion<cvt_to_integer<s32, Direction::up>>()},
    Opcode{"cvt.rzi.u32.f32", conversion<cvt_to_integer<u32, Direction::toward_zero>>()},
    Opcode{"cvta.global.u64", pure<to_generic<Space::global>>()},
    Opcode{"cvta.shared.u64", pure<to_generic<Space::shared>>()},
    Opcode{"cvta.local.u64", pure<to_generic<Space::local>>()},
    Opcode{"cvta.to.global.u64", pure<from_generic<Space::global>>()},
    Opcode{"cvta.to.shared.u64", checked<from_generic<Space::shared>>()},
    Opcode{"cvta.to.local.u64", checked<from_generic<Space::local>>()},
};

}  // namespace

std::span<const Opcode> convert_opcodes() {
  return table;
}

}  // namespace halfscope::ptx
