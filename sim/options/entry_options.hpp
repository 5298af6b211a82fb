// Options that an entry of a table brings, such as an optimizer its momentum: default, range and text.
#pragma once

#include <array>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include <halfscope/io/json/json_lines.hpp>
#include <halfscope/scaling/scaler_options.hpp>

#include "sim/options/field_range.hpp"

namespace halfscope {

/// Value by option: the chosen ones, or all that an entry has.
using OptionValues = std::map<std::string, double, std::less<>>;

struct EntryOption {
  std::string_view name;
  double value = 0;  ///< the default
  FieldRange range{};
  std::string_view summary{};
  OptionKind kind = OptionKind::number;
};

/// `option` of an entry that has another default.
[[nodiscard]] constexpr EntryOption with_default(EntryOption option, double value) {
  option.value = value;
  return option;
}

/// The option's value among `values`, or its default.
[[nodiscard]] double value_of(const EntryOption& option, const OptionValues& values);
/// The option's value as config.json has it: a whole number without a point.
[[nodiscard]] Json json_of(const EntryOption& option, double value);
/// The value of `option`, written as text. Throws InvalidArgument, with the range, for any other text.
[[nodiscard]] double parse_option(const EntryOption& option, std::string_view text);

/// The options of one entry, eight at most: one more does not compile.
class OptionTable {
 public:
  constexpr OptionTable() = default;
  constexpr OptionTable(std::initializer_list<EntryOption> options) {
    for (const EntryOption& option : options) options_.at(size_++) = option;
  }
  [[nodiscard]] constexpr const EntryOption* begin() const { return options_.data(); }
  [[nodiscard]] constexpr const EntryOption* end() const { return options_.data() + size_; }
  /// Null for a name that it lacks.
  [[nodiscard]] const EntryOption* find(std::string_view name) const;

 private:
  std::array<EntryOption, 8> options_{};
  std::size_t size_ = 0;
};

/// An entry as messages name it: "optimizer", "adam".
struct EntryName {
  std::string_view kind, name;
};

/// Every option of `table`, at `given` or its default. Throws InvalidArgument for one that the entry does not
/// take; the message lists those that it takes.
[[nodiscard]] OptionValues resolve_entry_options(const EntryName& entry, const OptionTable& table,
                                                 const OptionValues& given);

}  // namespace halfscope
