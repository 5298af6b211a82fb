// Actions made of plain functions: the operands of an opcode follow from the types of its function.
#pragma once

#include <array>
#include <bit>
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

/// The cells of an operand and the number that is added to each.
struct Source {
  const Warp::Cells& cells;
  u64 value;

  template <typename T>
  [[nodiscard]] T at(std::size_t lane) const {
    return from_cell<T>(cells[lane] + value);
  }
};

/// Computes all lanes if many are wanted, so that the loop has no branch, and keeps the wanted results.
template <auto function, typename Result, typename... Sources, std::size_t... place>
void apply(Warp& warp, Lanes lanes, const Operand* o, std::index_sequence<place...>) {
  (warp.require_written(o[1 + place], lanes), ...);
  const std::array<Source, sizeof...(place)> in{Source{warp.cells(o[1 + place]), o[1 + place].value}...};
  Warp::Cells& out = warp.cells(o[0]);
  const auto result = [&](std::size_t lane) {
    return to_cell<Result>(function(in[place].template at<Sources>(lane)...));
  };
  if (lanes == all_lanes) {
    Warp::Cells results;  // apart from the sources, which may be the same register
    for (std::size_t lane = 0; lane < warp_threads; ++lane) results[lane] = result(lane);
    out = results;
  } else {
    for (Lanes left = lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(left));
      out[lane] = result(lane);
    }
  }
  warp.mark_written(o[0], lanes);
}

template <auto function, typename Result, typename... Sources>
constexpr Execute execution(Result (*)(Sources...)) {
  return [](Warp& warp, Lanes lanes, const Operand* operands) {
    apply<function, Result, Sources...>(warp, lanes, operands, std::index_sequence_for<Sources...>{});
  };
}

template <auto function, typename Result, typename... Sources, std::size_t... place>
void apply_to_thread(Thread thread, const Operand* o, std::index_sequence<place...>) {
  thread.set<Result>(o[0], function(thread.get<Sources>(o[1 + place])...));
}

template <auto function, typename Result, typename... Sources>
constexpr Execute careful_execution(Result (*)(Sources...)) {
  return [](Warp& warp, Lanes lanes, const Operand* operands) {
    warp.for_each(lanes, [&](std::size_t lane) {
      apply_to_thread<function, Result, Sources...>(Thread(warp, lane), operands,
                                                    std::index_sequence_for<Sources...>{});
    });
  };
}

}  // namespace detail

/// The opcode whose result is `function` of its sources, which throws nothing.
template <auto function>
[[nodiscard]] constexpr Action pure() {
  return {detail::signature_of(function), Kind::thread, detail::execution<function>(function)};
}

/// As pure, with a function that throws Violation.
template <auto function>
[[nodiscard]] constexpr Action checked() {
  return {detail::signature_of(function), Kind::thread, detail::careful_execution<function>(function)};
}

}  // namespace halfscope::ptx
