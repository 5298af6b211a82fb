// Options of a run's entries: lookup over the tables, defaults, texts.
#include "sim/train/entry_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include <halfscope/core/error.hpp>

#include "sim/data/datasets.hpp"
#include "sim/models/models.hpp"
#include "sim/optim/optimizers.hpp"

namespace halfscope {
namespace {

template <typename Table>
std::vector<EntryWithOptions> entries_of(const Table& table) {
  std::vector<EntryWithOptions> entries;
  for (const auto& entry : table) entries.push_back({entry.name, &entry.kind.options});
  return entries;
}

/// The entries that take an option with each of its texts, by default.
using TakersByText = std::map<std::string_view, std::map<double, std::vector<std::string_view>>>;

std::string text_of(const TakersByText& takers) {
  std::string text;
  for (const auto& [summary, by_default] : takers) {
    std::vector<std::string> values;
    for (const auto& [value, entries] : by_default)
      values.push_back(fmt::format("{:g} ({})", value, fmt::join(entries, ", ")));
    text += fmt::format("{}{}; by default {}", text.empty() ? "" : "; ", summary, fmt::join(values, ", "));
  }
  return text;
}

}  // namespace

const OptionTable& EntryTable::options_of(std::string_view name) const {
  return *find_in_table(kind, name, entries).options;
}

const EntryOption* EntryTable::find(std::string_view name) const {
  for (const EntryWithOptions& entry : entries)
    if (const EntryOption* option = entry.options->find(name)) return option;
  return nullptr;
}

bool EntryTable::is_foreign(std::string_view option, std::string_view name) const {
  return find(option) != nullptr && options_of(name).find(option) == nullptr;
}

const std::array<EntryTable, 3>& entry_tables() {
  static const std::array tables{
      EntryTable{"model", &TrainConfig::model, &TrainConfig::model_options, entries_of(model_table)},
      EntryTable{"dataset", &TrainConfig::dataset, &TrainConfig::dataset_options, entries_of(datasets)},
      EntryTable{"optimizer", &TrainConfig::optimizer, &TrainConfig::optimizer_options,
                 entries_of(optimizer_table)}};
  return tables;
}

TrainConfig with_entry_options(TrainConfig config) {
  for (const EntryTable& table : entry_tables()) {
    const std::string& entry = config.*table.chosen;
    config.*table.values =
        resolve_entry_options({table.kind, entry}, table.options_of(entry), config.*table.values);
  }
  return config;
}

std::vector<FieldDescription> describe_options(const EntryTable& table) {
  std::map<std::string_view, TakersByText> options;
  for (const EntryWithOptions& entry : table.entries)
    for (const EntryOption& option : *entry.options)
      options[option.name][option.summary][option.value].push_back(entry.name);
  std::vector<FieldDescription> described;
  for (const auto& [name, takers] : options)
    described.push_back({std::string(name), text_of(takers), std::string(table.kind)});
  return described;
}

}  // namespace halfscope
