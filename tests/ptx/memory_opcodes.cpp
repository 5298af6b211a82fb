// Loads, stores and atomic operations, in every space and vector size that the library uses.
// Source: PTX ISA, "ld", "st", "atom".
#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "tests/ptx/action.hpp"

namespace halfscope::ptx {
namespace {

template <typename T, std::size_t count>
using Elements = std::array<T, count>;

/// A register wider than T is filled with the sign of T, or with zeros.
template <typename T>
using Extended = std::conditional_t<std::is_signed_v<T>, s64, u64>;

template <Space space, typename Bytes>
void read(Warp& warp, std::size_t lane, u64 address, Bytes& bytes) {
  const auto to = std::as_writable_bytes(std::span(bytes));
  if constexpr (space == Space::global) {
    warp.environment().global.load(address, to);
  } else if constexpr (space == Space::shared) {
    warp.environment().shared.load(warp.thread_of(lane), address, to);
  } else {
    check_alignment(address, to.size());
    (space == Space::local ? warp.local(lane) : warp.environment().parameters).read_some(address, to);
  }
}
template <Space space, typename Bytes>
void write(Warp& warp, std::size_t lane, u64 address, const Bytes& bytes) {
  const auto from = std::as_bytes(std::span(bytes));
  if constexpr (space == Space::global) {
    warp.environment().global.store(address, from);
  } else if constexpr (space == Space::shared) {
    warp.environment().shared.store(warp.thread_of(lane), address, from);
  } else {
    static_assert(space == Space::local, "parameters are read only");
    check_alignment(address, from.size());
    warp.local(lane).write_some(address, from);
  }
}

/// One access of all `count` elements, aligned to its whole size.
template <Space space, typename T, std::uint8_t count>
void load_lanes(Warp& warp, Lanes lanes, const Operand* o) {
  const Operand& from = o[count];
  warp.require_written(from, lanes);
  const Warp::Cells& addresses = warp.cells(from);
  warp.for_each(lanes, [&](std::size_t lane) {
    Elements<T, count> values;
    read<space>(warp, lane, addresses[lane] + from.value, values);
    for (std::size_t i = 0; i < count; ++i) {
      warp.cells(o[i])[lane] = static_cast<u64>(static_cast<Extended<T>>(values[i]));
    }
  });
  for (std::size_t i = 0; i < count; ++i) warp.mark_written(o[i], lanes);
}
template <Space space, typename T, std::uint8_t count = 1>
constexpr Action load() {
  Action action{{}, Kind::thread, load_lanes<space, T, count>};
  action.signature.add(wider<T>(ItemKind::result, count)).add(address_in(space));
  return action;
}

template <Space space, typename T, std::uint8_t count>
void store_lanes(Warp& warp, Lanes lanes, const Operand* o) {
  for (std::size_t i = 0; i <= count; ++i) warp.require_written(o[i], lanes);
  const Warp::Cells& addresses = warp.cells(o[0]);
  warp.for_each(lanes, [&](std::size_t lane) {
    Elements<T, count> values;
    for (std::size_t i = 0; i < count; ++i)
      values[i] = from_cell<T>(warp.cells(o[1 + i])[lane] + o[1 + i].value);
    write<space>(warp, lane, addresses[lane] + o[0].value, values);
  });
}
template <Space space, typename T, std::uint8_t count = 1>
constexpr Action store() {
  Action action{{}, Kind::thread, store_lanes<space, T, count>};
  action.signature.add(address_in(space)).add(wider<T>(ItemKind::source, count));
  return action;
}

template <typename T>
T plus(T a, T b) {
  return static_cast<T>(a + b);
}
template <typename T>
T larger(T a, T b) {
  return std::max(a, b);
}

/// The result is what was there before.
template <Space space, typename T, T (*function)(T, T)>
void change_lanes(Warp& warp, Lanes lanes, const Operand* o) {
  warp.for_each(lanes, [&](std::size_t lane) {
    const u64 address = warp.get<u64>(o[1], lane);
    Elements<T, 1> before;
    Elements<T, 1> after{warp.get<T>(o[2], lane)};
    if constexpr (space == Space::shared) {
      const std::span<std::byte> cell =
          warp.environment().shared.atomic(warp.thread_of(lane), address, sizeof(T));
      std::memcpy(before.data(), cell.data(), sizeof(T));
      after[0] = function(before[0], after[0]);
      std::memcpy(cell.data(), after.data(), sizeof(T));
    } else {
      read<space>(warp, lane, address, before);
      after[0] = function(before[0], after[0]);
      write<space>(warp, lane, address, after);
    }
    warp.set(o[0], lane, before[0]);
  });
}
template <Space space, typename T, T (*function)(T, T)>
constexpr Action atomic() {
  Action action{{}, Kind::thread, change_lanes<space, T, function>};
  action.signature.add(item_of<T>(ItemKind::result)).add(address_in(space)).add(item_of<T>(ItemKind::source));
  return action;
}

using enum Space;

const std::array table{
    Opcode{"ld.param.u8", load<param, u8>()},
    Opcode{"ld.param.s8", load<param, s8>()},
    Opcode{"ld.param.u16", load<param, u16>()},
    Opcode{"ld.param.u32", load<param, u32>()},
    Opcode{"ld.param.u64", load<param, u64>()},
    Opcode{"ld.param.f32", load<param, u32>()},
    Opcode{"ld.param.f64", load<param, u64>()},
    Opcode{"ld.param.v2.u8", load<param, u8, 2>()},
    Opcode{"ld.param.v4.u8", load<param, u8, 4>()},
    Opcode{"ld.param.v4.u16", load<param, u16, 4>()},
    Opcode{"ld.param.v2.u32", load<param, u32, 2>()},
    Opcode{"ld.param.v2.u64", load<param, u64, 2>()},
    Opcode{"ld.param.v2.f32", load<param, u32, 2>()},
    Opcode{"ld.param.v4.f32", load<param, u32, 4>()},
    Opcode{"ld.global.u8", load<global, u8>()},
    Opcode{"ld.global.s8", load<global, s8>()},
    Opcode{"ld.global.u16", load<global, u16>()},
    Opcode{"ld.global.u32", load<global, u32>()},
    Opcode{"ld.global.s32", load<global, s32>()},
    Opcode{"ld.global.u64", load<global, u64>()},
    Opcode{"ld.global.f32", load<global, u32>()},
    Opcode{"ld.global.f64", load<global, u64>()},
    Opcode{"ld.global.v2.f32", load<global, u32, 2>()},
    Opcode{"ld.global.v2.u32", load<global, u32, 2>()},
    Opcode{"ld.global.v4.f32", load<global, u32, 4>()},
    Opcode{"ld.global.v4.u32", load<global, u32, 4>()},
    Opcode{"ld.volatile.global.u32", load<global, u32>()},
    Opcode{"ld.shared.u8", load<shared, u8>()},
    Opcode{"ld.shared.u16", load<shared, u16>()},
    Opcode{"ld.shared.u32", load<shared, u32>()},
    Opcode{"ld.shared.u64", load<shared, u64>()},
    Opcode{"ld.shared.f32", load<shared, u32>()},
    Opcode{"ld.shared.f64", load<shared, u64>()},
    Opcode{"ld.shared.v2.f32", load<shared, u32, 2>()},
    Opcode{"ld.shared.v4.f32", load<shared, u32, 4>()},
    Opcode{"ld.local.u8", load<local, u8>()},
    Opcode{"ld.local.u32", load<local, u32>()},
    Opcode{"ld.local.u64", load<local, u64>()},
    Opcode{"ld.local.f32", load<local, u32>()},
    Opcode{"ld.local.f64", load<local, u64>()},
    Opcode{"ld.local.v2.f32", load<local, u32, 2>()},
    Opcode{"st.global.u8", store<global, u8>()},
    Opcode{"st.global.u16", store<global, u16>()},
    Opcode{"st.global.u32", store<global, u32>()},
    Opcode{"st.global.u64", store<global, u64>()},
    Opcode{"st.global.f32", store<global, u32>()},
    Opcode{"st.global.f64", store<global, u64>()},
    Opcode{"st.global.v2.u16", store<global, u16, 2>()},
    Opcode{"st.global.v2.f32", store<global, u32, 2>()},
    Opcode{"st.global.v4.f32", store<global, u32, 4>()},
    Opcode{"st.global.v4.u32", store<global, u32, 4>()},
    Opcode{"st.shared.u8", store<shared, u8>()},
    Opcode{"st.shared.u16", store<shared, u16>()},
    Opcode{"st.shared.u32", store<shared, u32>()},
    Opcode{"st.shared.u64", store<shared, u64>()},
    Opcode{"st.shared.f32", store<shared, u32>()},
    Opcode{"st.shared.f64", store<shared, u64>()},
    Opcode{"st.shared.v4.u32", store<shared, u32, 4>()},
    Opcode{"st.shared.v4.f32", store<shared, u32, 4>()},
    Opcode{"st.local.u8", store<local, u8>()},
    Opcode{"st.local.u32", store<local, u32>()},
    Opcode{"st.local.u64", store<local, u64>()},
    Opcode{"st.local.f32", store<local, u32>()},
    Opcode{"st.local.f64", store<local, u64>()},
    Opcode{"st.local.v2.u32", store<local, u32, 2>()},
    Opcode{"st.local.v4.u32", store<local, u32, 4>()},
    Opcode{"st.local.v4.u8", store<local, u8, 4>()},
    Opcode{"st.local.v2.f32", store<local, u32, 2>()},
    Opcode{"st.local.v4.f32", store<local, u32, 4>()},
    Opcode{"atom.shared.add.u32", atomic<shared, u32, plus<u32>>()},
    Opcode{"atom.global.add.u32", atomic<global, u32, plus<u32>>()},
    Opcode{"atom.global.add.u64", atomic<global, u64, plus<u64>>()},
    Opcode{"atom.global.max.u32", atomic<global, u32, larger<u32>>()},
};

}  // namespace

std::span<const Opcode> memory_opcodes() {
  return table;
}

}  // namespace halfscope::ptx
