// Comparisons: ordered ones are false where an operand is NaN, those that end in u are true.
// Source: PTX ISA, chapter "Comparison and Selection Instructions".
#include <array>
#include <cmath>
#include <concepts>

#include "tests/ptx/action.hpp"

namespace halfscope::ptx {
namespace {

template <typename T>
bool is_unordered(T a, T b) {
  if constexpr (std::floating_point<T>) return std::isnan(a) || std::isnan(b);
  return false;
}

template <typename T>
bool eq(T a, T b) {
  return a == b;
}
/// Ordered: false of NaN.
template <typename T>
bool ne(T a, T b) {
  return a != b && !is_unordered(a, b);
}
template <typename T>
bool lt(T a, T b) {
  return a < b;
}
template <typename T>
bool le(T a, T b) {
  return a <= b;
}
template <typename T>
bool gt(T a, T b) {
  return a > b;
}
template <typename T>
bool ge(T a, T b) {
  return a >= b;
}
template <typename T>
bool num(T a, T b) {
  return !is_unordered(a, b);
}
template <typename T>
bool nan(T a, T b) {
  return is_unordered(a, b);
}
/// The unordered form of a comparison.
template <auto ordered, typename T>
bool or_nan(T a, T b) {
  return ordered(a, b) || is_unordered(a, b);
}

/// setp.CMP.BOOL: the comparison, joined with a predicate.
template <auto compare, typename T>
bool and_also(T a, T b, bool c) {
  return compare(a, b) && c;
}
template <auto compare, typename T>
bool or_else(T a, T b, bool c) {
  return compare(a, b) || c;
}
template <auto compare, typename T>
bool xor_with(T a, T b, bool c) {
  return compare(a, b) != c;
}

const std::array table{
    Opcode{"setp.eq.s16", pure<eq<s16>>()},
    Opcode{"setp.eq.u16", pure<eq<u16>>()},
    Opcode{"setp.eq.b16", pure<eq<u16>>()},
    Opcode{"setp.eq.s32", pure<eq<s32>>()},
    Opcode{"setp.eq.u32", pure<eq<u32>>()},
    Opcode{"setp.eq.b32", pure<eq<u32>>()},
    Opcode{"setp.eq.s64", pure<eq<s64>>()},
    Opcode{"setp.eq.u64", pure<eq<u64>>()},
    Opcode{"setp.eq.b64", pure<eq<u64>>()},
    Opcode{"setp.eq.f32", pure<eq<f32>>()},
    Opcode{"setp.eq.f64", pure<eq<f64>>()},
    Opcode{"setp.ne.s16", pure<ne<s16>>()},
    Opcode{"setp.ne.u16", pure<ne<u16>>()},
    Opcode{"setp.ne.b16", pure<ne<u16>>()},
    Opcode{"setp.ne.s32", pure<ne<s32>>()},
    Opcode{"setp.ne.u32", pure<ne<u32>>()},
    Opcode{"setp.ne.b32", pure<ne<u32>>()},
    Opcode{"setp.ne.s64", pure<ne<s64>>()},
    Opcode{"setp.ne.u64", pure<ne<u64>>()},
    Opcode{"setp.ne.b64", pure<ne<u64>>()},
    Opcode{"setp.ne.f32", pure<ne<f32>>()},
    Opcode{"setp.ne.f64", pure<ne<f64>>()},
    Opcode{"setp.neu.f32", pure<or_nan<ne<f32>, f32>>()},
    Opcode{"setp.neu.f64", pure<or_nan<ne<f64>, f64>>()},
    Opcode{"setp.lt.s16", pure<lt<s16>>()},
    Opcode{"setp.lt.u16", pure<lt<u16>>()},
    Opcode{"setp.lt.s32", pure<lt<s32>>()},
    Opcode{"setp.lt.u32", pure<lt<u32>>()},
    Opcode{"setp.lt.s64", pure<lt<s64>>()},
    Opcode{"setp.lt.u64", pure<lt<u64>>()},
    Opcode{"setp.lt.f32", pure<lt<f32>>()},
    Opcode{"setp.lt.f64", pure<lt<f64>>()},
    // Only mutants have these: le of s16, u16, u32 and u64, le.or, ge of s16 and u16.
    Opcode{"setp.le.s16", pure<le<s16>>()},
    Opcode{"setp.le.u16", pure<le<u16>>()},
    Opcode{"setp.le.s32", pure<le<s32>>()},
    Opcode{"setp.le.u32", pure<le<u32>>()},
    Opcode{"setp.le.s64", pure<le<s64>>()},
    Opcode{"setp.le.u64", pure<le<u64>>()},
    Opcode{"setp.le.f32", pure<le<f32>>()},
    Opcode{"setp.le.f64", pure<le<f64>>()},
    Opcode{"setp.gt.s16", pure<gt<s16>>()},
    Opcode{"setp.gt.u16", pure<gt<u16>>()},
    Opcode{"setp.gt.s32", pure<gt<s32>>()},
    Opcode{"setp.gt.u32", pure<gt<u32>>()},
    Opcode{"setp.gt.s64", pure<gt<s64>>()},
    Opcode{"setp.gt.u64", pure<gt<u64>>()},
    Opcode{"setp.gt.f32", pure<gt<f32>>()},
    Opcode{"setp.gt.f64", pure<gt<f64>>()},
    Opcode{"setp.ge.s16", pure<ge<s16>>()},
    Opcode{"setp.ge.u16", pure<ge<u16>>()},
    Opcode{"setp.ge.s32", pure<ge<s32>>()},
    Opcode{"setp.ge.u32", pure<ge<u32>>()},
    Opcode{"setp.ge.s64", pure<ge<s64>>()},
    Opcode{"setp.ge.u64", pure<ge<u64>>()},
    Opcode{"setp.ge.f32", pure<ge<f32>>()},
    Opcode{"setp.ge.f64", pure<ge<f64>>()},
    Opcode{"setp.leu.f32", pure<or_nan<le<f32>, f32>>()},
    Opcode{"setp.ltu.f32", pure<or_nan<lt<f32>, f32>>()},
    Opcode{"setp.ltu.f64", pure<or_nan<lt<f64>, f64>>()},
    Opcode{"setp.gtu.f32", pure<or_nan<gt<f32>, f32>>()},
    Opcode{"setp.geu.f32", pure<or_nan<ge<f32>, f32>>()},
    Opcode{"setp.equ.f64", pure<or_nan<eq<f64>, f64>>()},
    Opcode{"setp.num.f32", pure<num<f32>>()},
    Opcode{"setp.num.f64", pure<num<f64>>()},
    Opcode{"setp.nan.f32", pure<nan<f32>>()},
    Opcode{"setp.nan.f64", pure<nan<f64>>()},
    Opcode{"setp.eq.and.s32", pure<and_also<eq<s32>, s32>>()},
    Opcode{"setp.lt.or.s32", pure<or_else<lt<s32>, s32>>()},
    Opcode{"setp.le.or.s32", pure<or_else<le<s32>, s32>>()},
    Opcode{"setp.ne.xor.s32", pure<xor_with<ne<s32>, s32>>()},
};

}  // namespace

std::span<const Opcode> compare_opcodes() {
  return table;
}

}  // namespace halfscope::ptx
