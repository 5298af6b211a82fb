// Names of table entries and enumerators: the strings of the command line, of JSON and of test names.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/core/error.hpp>

namespace halfscope {

/// The names that a misspelling may have turned into `given`, or that have all of it (if it has three letters
/// or more): those that begin with it before any other, then those with the fewest edits; equal ones in their
/// order. Nothing where more than a third of the letters differ.
[[nodiscard]] std::vector<std::string_view> nearest_names(std::string_view given,
                                                          std::span<const std::string_view> names);

/// "; did you mean 'NEAREST'?"; empty where no name is near.
[[nodiscard]] std::string did_you_mean(std::string_view given, std::span<const std::string_view> names);

/// "unknown KIND 'GIVEN'; did you mean 'NEAREST'? (one of: ...)", the message of every failed look-up.
[[nodiscard]] std::string unknown_name(std::string_view kind, std::string_view given,
                                       std::span<const std::string_view> names);

/// Names of an enum's values, in order of declaration from 0. Each named enum specialises it.
template <typename Enum>
inline constexpr std::array<std::string_view, 0> enum_names{};

template <typename Enum>
[[nodiscard]] constexpr std::string_view name_of(Enum value) {
  return enum_names<Enum>.at(static_cast<std::size_t>(value));
}

/// The enumerator called `name`; throws InvalidArgument naming `kind` and the nearest valid name.
template <typename Enum>
[[nodiscard]] Enum parse_enum(std::string_view kind, std::string_view name) {
  const auto& names = enum_names<Enum>;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw InvalidArgument(unknown_name(kind, name, names));
  return static_cast<Enum>(found - names.begin());
}

/// The names of a table's entries (a range of values with a `.name`), in order.
template <typename Table>
[[nodiscard]] std::vector<std::string_view> table_names(const Table& table) {
  std::vector<std::string_view> names;
  names.reserve(std::size(table));
  for (const auto& entry : table) names.push_back(entry.name);
  return names;
}

/// The entry of a table called `name`; throws InvalidArgument if there is none.
template <typename Table>
[[nodiscard]] const auto& find_in_table(std::string_view kind, std::string_view name, const Table& table) {
  for (const auto& entry : table) {
    if (entry.name == name) return entry;
  }
  throw InvalidArgument(unknown_name(kind, name, table_names(table)));
}

}  // namespace halfscope
