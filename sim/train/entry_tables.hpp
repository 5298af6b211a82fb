// Tables whose entries bring options to a run: models, data sets and optimizers.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sim/options/entry_options.hpp"
#include "sim/train/config.hpp"

namespace halfscope {

/// The options of one entry.
struct EntryWithOptions {
  std::string_view name;
  const OptionTable* options;
};

/// A table, and the fields of a config that choose its entry and the entry's options.
struct EntryTable {
  std::string_view kind;  ///< the key of config.json that names the entry
  std::string TrainConfig::*chosen;
  OptionValues TrainConfig::*values;
  std::vector<EntryWithOptions> entries;

  /// The options of the entry called `name`. Throws InvalidArgument for an unknown name.
  [[nodiscard]] const OptionTable& options_of(std::string_view name) const;
  /// Whether `option` belongs to some entry, but not to the one called `name`. Throws as `options_of` does.
  [[nodiscard]] bool is_foreign(std::string_view option, std::string_view name) const;
  /// The option of the first entry that has one called `name`; null where none has.
  [[nodiscard]] const EntryOption* find(std::string_view name) const;
};

/// The tables of models, data sets and optimizers.
[[nodiscard]] const std::array<EntryTable, 3>& entry_tables();

/// `config` with every option of its entries written out. Throws InvalidArgument for an option that its entry
/// does not take; the message lists those that it takes.
[[nodiscard]] TrainConfig with_entry_options(TrainConfig config);

/// Each option of a table once: "TEXT; by default 0.9 (sgd, rmsprop)".
[[nodiscard]] std::vector<FieldDescription> describe_options(const EntryTable& table);

}  // namespace halfscope
