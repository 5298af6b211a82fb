// Operands of an opcode: how many, of which width, and in which space their addresses are.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <halfscope/core/names.hpp>

namespace halfscope::ptx {

/// State spaces, which have addresses of their own.
enum class Space : std::uint8_t { global, shared, local, param };

enum class Width : std::uint8_t { predicate, bits8, bits16, bits32, bits64 };

enum class ItemKind : std::uint8_t {
  result,    ///< registers that are written
  source,    ///< registers or immediates that are read
  address,   ///< register or symbol and an offset, in brackets
  label,     ///< target of a branch
  constant,  ///< a number that stands in the text
};

/// One operand, or the `count` registers of a vector in braces.
struct Item {
  ItemKind kind = ItemKind::source;
  Width width = Width::bits32;
  std::uint8_t count = 1;
  /// Whether a register may be wider, as in ld, st and cvt.
  bool or_wider = false;
  Space space = Space::global;  ///< space of an address
};

/// The operands in the order of the text.
struct Signature {
  std::array<Item, 6> items{};
  std::size_t size = 0;

  constexpr Signature& add(const Item& item) {
    items[size++] = item;
    return *this;
  }
};

/// The width of a register that holds a T. No register has 8 bits: they lie in a wider one.
template <typename T>
[[nodiscard]] constexpr Item item_of(ItemKind kind, std::uint8_t count = 1) {
  if constexpr (std::is_same_v<T, bool>) return {kind, Width::predicate, count};
  if constexpr (sizeof(T) == 2) return {kind, Width::bits16, count};
  if constexpr (sizeof(T) == 4) return {kind, Width::bits32, count};
  if constexpr (sizeof(T) == 8) return {kind, Width::bits64, count};
  return {kind, Width::bits8, count, true};
}

template <typename T>
[[nodiscard]] constexpr Item wider(ItemKind kind, std::uint8_t count = 1) {
  Item item = item_of<T>(kind, count);
  item.or_wider = true;
  return item;
}

[[nodiscard]] constexpr Item address_in(Space space) {
  return {ItemKind::address, Width::bits64, 1, true, space};
}

}  // namespace halfscope::ptx

template <>
inline constexpr std::array<std::string_view, 4> halfscope::enum_names<halfscope::ptx::Space>{
    "global", "shared", "local", "param"};
template <>
inline constexpr std::array<std::string_view, 5> halfscope::enum_names<halfscope::ptx::Width>{
    "predicate", "8 bits", "16 bits", "32 bits", "64 bits"};
