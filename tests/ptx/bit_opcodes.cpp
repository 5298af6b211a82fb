// Opcodes on bits: logic, shifts, fields, moves and choices.
// Source: PTX ISA, chapters "Logic and Shift Instructions" and "Data Movement and Conversion Instructions".
#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

#include "tests/ptx/action.hpp"

namespace halfscope::ptx {
namespace {

template <typename T>
T bit_and(T a, T b) {
  return static_cast<T>(a & b);
}
template <typename T>
T bit_or(T a, T b) {
  return static_cast<T>(a | b);
}
template <typename T>
T bit_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <typename T>
T bit_not(T a) {
  return static_cast<T>(~a);
}
template <>
bool bit_not(bool a) {
  return !a;
}

/// An amount beyond the width is clamped to it.
template <typename T>
constexpr u32 width = 8 * sizeof(T);
template <typename T>
T shl(T a, u32 amount) {
  return amount >= width<T> ? T{0} : static_cast<T>(static_cast<u64>(a) << amount);
}
/// The sign of a signed T fills up.
template <typename T>
T shr(T a, u32 amount) {
  if (amount < width<T>) return static_cast<T>(a >> amount);
  if constexpr (std::is_signed_v<T>) return static_cast<T>(a < 0 ? -1 : 0);
  return T{0};
}

/// The bits of `high` and `low` side by side, shifted; the lower half.
u32 funnel_right(u32 low, u32 high, u32 amount) {
  return static_cast<u32>((u64{high} << 32 | low) >> amount);
}
/// The upper half.
u32 funnel_left(u32 low, u32 high, u32 amount) {
  return static_cast<u32>(((u64{high} << 32 | low) << amount) >> 32);
}
u32 shf_r_clamp(u32 low, u32 high, u32 amount) {
  return funnel_right(low, high, std::min(amount, 32u));
}
u32 shf_l_clamp(u32 low, u32 high, u32 amount) {
  return funnel_left(low, high, std::min(amount, 32u));
}
u32 shf_r_wrap(u32 low, u32 high, u32 amount) {
  return funnel_right(low, high, amount % 32);
}
u32 shf_l_wrap(u32 low, u32 high, u32 amount) {
  return funnel_left(low, high, amount % 32);
}

/// `length` bits of `field` in place of those of `into` from `start` on; both numbers count by their low
/// byte.
template <typename T>
T bfi(T field, T into, u32 start, u32 length) {
  const u32 from = start & 0xFF;
  const u32 bits = std::min(length & 0xFF, width<T>);
  const T mask = bits == width<T> ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << bits) - 1);
  return static_cast<T>((into & ~shl(mask, from)) | shl(static_cast<T>(field & mask), from));
}
template <typename T>
u32 clz(T a) {
  return static_cast<u32>(std::countl_zero(a));
}

/// A copy of a register never written holds nothing either; reading it is a fault, copying is none.
template <typename T>
void move_lanes(Warp& warp, Lanes lanes, const Operand* o) {
  const Warp::Cells from = warp.cells(o[1]);
  const Lanes written = warp.written(o[1]) & lanes;
  Warp::Cells& to = warp.cells(o[0]);
  for (std::size_t lane = 0; lane < warp_threads; ++lane) {
    const u64 value = to_cell(from_cell<T>(from[lane] + o[1].value));
    to[lane] = (lanes >> lane & 1) != 0 ? value : to[lane];
  }
  warp.mark_unwritten(o[0], lanes);
  warp.mark_written(o[0], written);
}
template <typename T>
constexpr Action move() {
  Action action{{}, Kind::thread, move_lanes<T>};
  action.signature.add(item_of<T>(ItemKind::result)).add(item_of<T>(ItemKind::source));
  return action;
}

template <typename T>
void select_lanes(Warp& warp, Lanes lanes, const Operand* o) {
  const Lanes first = warp.where(o[3], lanes);
  const Warp::Cells &a = warp.cells(o[1]), &b = warp.cells(o[2]);
  const Lanes written = (warp.written(o[1]) & first) | (warp.written(o[2]) & lanes & ~first);
  Warp::Cells& to = warp.cells(o[0]);
  for (std::size_t lane = 0; lane < warp_threads; ++lane) {
    const u64 chosen = (first >> lane & 1) != 0 ? a[lane] + o[1].value : b[lane] + o[2].value;
    to[lane] = (lanes >> lane & 1) != 0 ? to_cell(from_cell<T>(chosen)) : to[lane];
  }
  warp.mark_unwritten(o[0], lanes);
  warp.mark_written(o[0], written);
}
template <typename T>
constexpr Action select() {
  Action action{{}, Kind::thread, select_lanes<T>};
  action.signature.add(item_of<T>(ItemKind::result))
      .add(item_of<T>(ItemKind::source))
      .add(item_of<T>(ItemKind::source));
  action.signature.add(item_of<bool>(ItemKind::source));
  return action;
}

/// The parts of a register, lowest first, in a vector.
template <typename Whole, typename Part>
constexpr std::uint8_t parts = sizeof(Whole) / sizeof(Part);
template <typename Whole, typename Part>
void unpack_thread(Thread thread, const Operand* o) {
  const u64 whole = thread.get<Whole>(o[parts<Whole, Part>]);
  for (u32 i = 0; i < parts<Whole, Part>; ++i)
    thread.set<Part>(o[i], static_cast<Part>(whole >> (i * width<Part>)));
}
template <typename Whole, typename Part>
constexpr Action unpack() {
  Action action{{}, Kind::thread, each_thread<unpack_thread<Whole, Part>>};
  action.signature.add(item_of<Part>(ItemKind::result, parts<Whole, Part>))
      .add(item_of<Whole>(ItemKind::source));
  return action;
}
template <typename Whole, typename Part>
void pack_thread(Thread thread, const Operand* o) {
  u64 whole = 0;
  for (u32 i = 0; i < parts<Whole, Part>; ++i) whole |= u64{thread.get<Part>(o[1 + i])} << (i * width<Part>);
  thread.set<Whole>(o[0], static_cast<Whole>(whole));
}
template <typename Whole, typename Part>
constexpr Action pack() {
  Action action{{}, Kind::thread, each_thread<pack_thread<Whole, Part>>};
  action.signature.add(item_of<Whole>(ItemKind::result))
      .add(item_of<Part>(ItemKind::source, parts<Whole, Part>));
  return action;
}

const std::array table{
    Opcode{"and.pred", pure<bit_and<bool>>()},
    Opcode{"and.b16", pure<bit_and<u16>>()},
    Opcode{"and.b32", pure<bit_and<u32>>()},
    Opcode{"and.b64", pure<bit_and<u64>>()},
    Opcode{"or.pred", pure<bit_or<bool>>()},
    Opcode{"or.b16", pure<bit_or<u16>>()},
    Opcode{"or.b32", pure<bit_or<u32>>()},
    Opcode{"or.b64", pure<bit_or<u64>>()},
    Opcode{"xor.pred", pure<bit_xor<bool>>()},
    Opcode{"xor.b16", pure<bit_xor<u16>>()},
    Opcode{"xor.b32", pure<bit_xor<u32>>()},
    Opcode{"xor.b64", pure<bit_xor<u64>>()},
    Opcode{"not.pred", pure<bit_not<bool>>()},
    Opcode{"not.b16", pure<bit_not<u16>>()},
    Opcode{"not.b32", pure<bit_not<u32>>()},
    Opcode{"not.b64", pure<bit_not<u64>>()},
    Opcode{"shl.b16", pure<shl<u16>>()},
    Opcode{"shl.b32", pure<shl<u32>>()},
    Opcode{"shl.b64", pure<shl<u64>>()},
    Opcode{"shr.s16", pure<shr<s16>>()},
    Opcode{"shr.u16", pure<shr<u16>>()},
    Opcode{"shr.s32", pure<shr<s32>>()},
    Opcode{"shr.u32", pure<shr<u32>>()},
    Opcode{"shr.s64", pure<shr<s64>>()},
    Opcode{"shr.u64", pure<shr<u64>>()},
    Opcode{"shf.r.clamp.b32", pure<shf_r_clamp>()},
    Opcode{"shf.l.clamp.b32", pure<shf_l_clamp>()},
    Opcode{"shf.r.wrap.b32", pure<shf_r_wrap>()},
    Opcode{"shf.l.wrap.b32", pure<shf_l_wrap>()},
    Opcode{"bfi.b32", pure<bfi<u32>>()},
    Opcode{"bfi.b64", pure<bfi<u64>>()},
    Opcode{"clz.b32", pure<clz<u32>>()},
    Opcode{"clz.b64", pure<clz<u64>>()},
    Opcode{"mov.pred", move<bool>()},
    Opcode{"mov.b16", move<u16>()},
    Opcode{"mov.u16", move<u16>()},
    Opcode{"mov.b32", move<u32>()},
    Opcode{"mov.u32", move<u32>()},
    Opcode{"mov.f32", move<u32>()},
    Opcode{"mov.b64", move<u64>()},
    Opcode{"mov.u64", move<u64>()},
    Opcode{"mov.f64", move<u64>()},
    Opcode{"mov.b32", unpack<u32, u16>()},
    Opcode{"mov.b32", pack<u32, u16>()},
    Opcode{"mov.b64", unpack<u64, u32>()},
    Opcode{"mov.b64", pack<u64, u32>()},
    Opcode{"selp.b16", select<u16>()},
    Opcode{"selp.u16", select<u16>()},
    Opcode{"selp.b32", select<u32>()},
    Opcode{"selp.u32", select<u32>()},
    Opcode{"selp.s32", select<u32>()},
    Opcode{"selp.f32", select<u32>()},
    Opcode{"selp.b64", select<u64>()},
    Opcode{"selp.u64", select<u64>()},
    Opcode{"selp.s64", select<u64>()},
    Opcode{"selp.f64", select<u64>()},
};

}  // namespace

std::span<const Opcode> bit_opcodes() {
  return table;
}

}  // namespace halfscope::ptx
