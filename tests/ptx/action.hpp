// Actions made of plain functions: the operands of an opcode follow from the types of its function.
#pragma once

#include <cstdint>
#include <utility>

#include "tests/ptx/opcode.hpp"
#include "tests/ptx/thread.hpp"

namespace halfscope::ptx {

// The types of PTX; .b32 is u32.
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using f32 = float;
using f64 = double;

namespace detail {

template <typename Result, typename... Sources>
constexpr Signature signature_of(Result (*)(Sources...)) {
  Signature signature;
  signature.add(item_of<Result>(ItemKind::result));
  (signature.add(item_of<Sources>(ItemKind::source)), ...);
  return signature;
}

template <typename Result, typename... Sources, std::size_t... place>
void apply(Result (*function)(Sources...), Thread& thread, const Operand* operands,
           std::index_sequence<place...>) {
  thread.set<Result>(operands[0], function(thread.get<Sources>(operands[1 + place])...));
}

template <auto function, typename Result, typename... Sources>
constexpr ThreadAction thread_action(Result (*)(Sources...)) {
  return [](Thread& thread, const Operand* operands) {
    apply(function, thread, operands, std::index_sequence_for<Sources...>{});
  };
}

}  // namespace detail

/// The opcode whose result is `function` of its sources.
template <auto function>
[[nodiscard]] constexpr Action pure() {
  return {detail::signature_of(function), Kind::thread, detail::thread_action<function>(function), nullptr};
}

}  // namespace halfscope::ptx
