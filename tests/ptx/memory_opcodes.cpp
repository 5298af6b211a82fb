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
std::span<std::byte> bytes_of(std::array<T, count>& values) {
  return std::as_writable_bytes(std::span(values));
}

/// A register wider than T is filled with the sign of T, or with zeros.
template <typename T>
using Extended = std::conditional_t<std::is_signed_v<T>, s64, u64>;

/// One access of all `count` elements, aligned to its whole size.
template <Space space, typename T, std::uint8_t count = 1>
constexpr Action load() {
  Action action{{}, Kind::thread, nullptr, nullptr};
  action.signature.add(wider<T>(ItemKind::result, count)).add(address_in(space));
  action.thread = [](Thread& thread, const Operand* o) {
    std::array<T, count> values;
    thread.load<space>(thread.get<u64>(o[count]), bytes_of(values));
    for (std::size_t i = 0; i < count; ++i) thread.set(o[i], static_cast<Extended<T>>(values[i]));
  };
  return action;
}
template <Space space, typename T, std::uint8_t count = 1>
constexpr Action store() {
  Action action{{}, Kind::thread, nullptr, nullptr};
  action.signature.add(address_in(space)).add(wider<T>(ItemKind::source, count));
  action.thread = [](Thread& thread, const Operand* o) {
    std::array<T, count> values;
    for (std::size_t i = 0; i < count; ++i) values[i] = thread.get<T>(o[1 + i]);
    thread.store<space>(thread.get<u64>(o[0]), bytes_of(values));
  };
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
constexpr Action atomic() {
  Action action{{}, Kind::thread, nullptr, nullptr};
  action.signature.add(item_of<T>(ItemKind::result)).add(address_in(space)).add(item_of<T>(ItemKind::source));
  action.thread = [](Thread& thread, const Operand* o) {
    const u64 address = thread.get<u64>(o[1]);
    std::array<T, 1> before;
    std::array<T, 1> after{thread.get<T>(o[2])};
    if constexpr (space == Space::shared) {
      const std::span<std::byte> cell =
          thread.environment().shared.atomic(thread.number(), address, sizeof(T));
      std::memcpy(before.data(), cell.data(), sizeof(T));
      after[0] = function(before[0], after[0]);
      std::memcpy(cell.data(), after.data(), sizeof(T));
    } else {
      thread.load<space>(address, bytes_of(before));
      after[0] = function(before[0], after[0]);
      thread.store<space>(address, bytes_of(after));
    }
    thread.set(o[0], before[0]);
  };
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
