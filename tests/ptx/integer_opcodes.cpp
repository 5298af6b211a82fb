// Integer opcodes: sums and products modulo 2^n, quotients, extremes.
// Source: PTX ISA, chapter "Integer Arithmetic Instructions".
#include <array>
#include <limits>
#include <type_traits>

#include "tests/ptx/action.hpp"
#include "tests/ptx/fault.hpp"

namespace halfscope::ptx {
namespace {

/// Twice the width of T, with its sign.
template <typename T>
struct Twice;
template <>
struct Twice<s16> {
  using type = s32;
};
template <>
struct Twice<u16> {
  using type = u32;
};
template <>
struct Twice<s32> {
  using type = s64;
};
template <>
struct Twice<u32> {
  using type = u64;
};
__extension__ using s128 = __int128;
__extension__ using u128 = unsigned __int128;
template <>
struct Twice<s64> {
  using type = s128;
};
template <>
struct Twice<u64> {
  using type = u128;
};

/// Sums and products wrap: in 64 unsigned bits, of which the low ones are right in both readings.
template <typename T>
constexpr u64 widened(T x) {
  return static_cast<u64>(x);
}

template <typename T>
T add(T a, T b) {
  return static_cast<T>(widened(a) + widened(b));
}
template <typename T>
T sub(T a, T b) {
  return static_cast<T>(widened(a) - widened(b));
}
template <typename T>
T mul_lo(T a, T b) {
  return static_cast<T>(widened(a) * widened(b));
}
template <typename T>
T mad_lo(T a, T b, T c) {
  return static_cast<T>(widened(a) * widened(b) + widened(c));
}
template <typename T>
typename Twice<T>::type mul_wide(T a, T b) {
  using Wide = typename Twice<T>::type;
  return static_cast<Wide>(static_cast<Wide>(a) * static_cast<Wide>(b));
}
template <typename T>
T mul_hi(T a, T b) {
  using Wide = typename Twice<T>::type;
  return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (8 * sizeof(T)));
}
template <typename T>
typename Twice<T>::type mad_wide(T a, T b, typename Twice<T>::type c) {
  return add(mul_wide(a, b), c);
}

/// The ISA leaves a division by zero to the machine: no program may depend on it.
template <typename T>
void check_divisor(T b) {
  if (b == 0) throw Violation("integer division by zero");
}
/// The one quotient that has no number: it wraps.
template <typename T>
bool overflows(T a, T b) {
  if constexpr (std::is_signed_v<T>) return a == std::numeric_limits<T>::min() && b == -1;
  return false;
}
template <typename T>
T div(T a, T b) {
  check_divisor(b);
  return overflows(a, b) ? a : static_cast<T>(a / b);
}
template <typename T>
T rem(T a, T b) {
  check_divisor(b);
  return overflows(a, b) ? T{0} : static_cast<T>(a % b);
}

template <typename T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
T max(T a, T b) {
  return a < b ? b : a;
}
template <typename T>
T neg(T a) {
  return sub(T{0}, a);
}
template <typename T>
T abs(T a) {
  return a < 0 ? neg(a) : a;
}

const std::array table{
    Opcode{"add.s16", pure<add<s16>>()},           Opcode{"add.s32", pure<add<s32>>()},
    Opcode{"add.s64", pure<add<s64>>()},           Opcode{"add.u64", pure<add<u64>>()},
    Opcode{"sub.s16", pure<sub<s16>>()},           Opcode{"sub.s32", pure<sub<s32>>()},
    Opcode{"sub.s64", pure<sub<s64>>()},           Opcode{"mul.lo.s16", pure<mul_lo<s16>>()},
    Opcode{"mul.lo.s32", pure<mul_lo<s32>>()},     Opcode{"mul.lo.s64", pure<mul_lo<s64>>()},
    Opcode{"mul.wide.u16", pure<mul_wide<u16>>()}, Opcode{"mul.wide.s32", pure<mul_wide<s32>>()},
    Opcode{"mul.wide.u32", pure<mul_wide<u32>>()}, Opcode{"mul.hi.s32", pure<mul_hi<s32>>()},
    Opcode{"mul.hi.u32", pure<mul_hi<u32>>()},     Opcode{"mul.hi.u64", pure<mul_hi<u64>>()},
    Opcode{"mad.lo.s32", pure<mad_lo<s32>>()},     Opcode{"mad.lo.s64", pure<mad_lo<s64>>()},
    Opcode{"mad.wide.u32", pure<mad_wide<u32>>()}, Opcode{"div.s32", checked<div<s32>>()},
    Opcode{"div.s64", checked<div<s64>>()},        Opcode{"div.u32", checked<div<u32>>()},
    Opcode{"div.u64", checked<div<u64>>()},        Opcode{"rem.s32", checked<rem<s32>>()},
    Opcode{"rem.s64", checked<rem<s64>>()},        Opcode{"rem.u32", checked<rem<u32>>()},
    Opcode{"rem.u64", checked<rem<u64>>()},        Opcode{"min.s16", pure<min<s16>>()},
    Opcode{"min.u16", pure<min<u16>>()},           Opcode{"min.s32", pure<min<s32>>()},
    Opcode{"min.u32", pure<min<u32>>()},           Opcode{"min.s64", pure<min<s64>>()},
    Opcode{"min.u64", pure<min<u64>>()},           Opcode{"max.s16", pure<max<s16>>()},
    Opcode{"max.u16", pure<max<u16>>()},           Opcode{"max.s32", pure<max<s32>>()},
    Opcode{"max.u32", pure<max<u32>>()},           Opcode{"max.s64", pure<max<s64>>()},
    Opcode{"max.u64", pure<max<u64>>()},           Opcode{"neg.s16", pure<neg<s16>>()},
    Opcode{"neg.s32", pure<neg<s32>>()},           Opcode{"neg.s64", pure<neg<s64>>()},
    Opcode{"abs.s32", pure<abs<s32>>()},           Opcode{"abs.s64", pure<abs<s64>>()},
};

}  // namespace

std::span<const Opcode> integer_opcodes() {
  return table;
}

}  // namespace halfscope::ptx
