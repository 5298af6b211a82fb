// Options of entries: lookup, defaults, and the message about a foreign one.
#include "sim/options/entry_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <vector>

#include <halfscope/core/error.hpp>

namespace halfscope {
namespace {

InvalidArgument foreign_option(const EntryName& entry, const OptionTable& table, std::string_view name) {
  std::vector<std::string_view> own;
  for (const EntryOption& option : table) own.push_back(option.name);
  const std::string taken =
      own.empty() ? "no options; leave it out" : fmt::format("{}", fmt::join(own, ", "));
  return InvalidArgument(fmt::format("{}: the {} {} takes {}", name, entry.kind, entry.name, taken));
}

}  // namespace

const EntryOption* OptionTable::find(std::string_view name) const {
  const auto* const found =
      std::find_if(begin(), end(), [&](const EntryOption& o) { return o.name == name; });
  return found == end() ? nullptr : found;
}

double value_of(const EntryOption& option, const OptionValues& values) {
  const auto found = values.find(option.name);
  return found == values.end() ? option.value : found->second;
}

Json json_of(const EntryOption& option, double value) {
  if (option.kind == OptionKind::number) return Json(value);
  return Json(static_cast<std::int64_t>(value));
}

double parse_option(const EntryOption& option, std::string_view text) {
  if (option.kind == OptionKind::number) return parse_number(option.name, text, option.range);
  return static_cast<double>(parse_whole_number(option.name, text, option.range));
}

OptionValues resolve_entry_options(const EntryName& entry, const OptionTable& table,
                                   const OptionValues& given) {
  OptionValues resolved;
  for (const EntryOption& option : table) resolved.emplace(option.name, option.value);
  for (const auto& [name, value] : given) {
    const auto own = resolved.find(name);
    if (own == resolved.end()) throw foreign_option(entry, table, name);
    own->second = value;
  }
  return resolved;
}

}  // namespace halfscope
