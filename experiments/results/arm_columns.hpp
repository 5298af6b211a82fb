// Columns of the table of arms: a line each, with how a column is measured over an arm's runs and how it is
// shown.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/results/run_records.hpp"

namespace halfscope {

/// When the table has a column: never, always, where an arm knows it, or with those of the loss scale or
/// memory.
enum class InTable : std::uint8_t { never, always, where_known, with_scale, with_memory };

/// When `report --json` has it: never, always (null where unknown), or where it is known.
enum class InJson : std::uint8_t { never, always, where_known };

/// How a value is written: a plain number, a percentage of a share, or "1 of 3" seeds.
enum class Written : std::uint8_t { number, count, share, of_seeds };

struct ArmColumn {
  std::string_view key;      ///< key in `report --json`; "a.b" is the member b of a
  std::string_view title{};  ///< heading in the table
  std::optional<double> (*measure)(const std::vector<FinishedRun>& runs) = nullptr;
  InTable in_table = InTable::never;
  InJson in_json = InJson::always;
  int left_out = 0;  ///< as of Column
  Written written = Written::number;
  int digits = 0;
  double factor = 1;             ///< the table's value over the measured one
  std::string_view table_key{};  ///< key in CSV and --sort; empty: `key`
};

/// In the order of the table.
[[nodiscard]] std::span<const ArmColumn> arm_columns();
[[nodiscard]] std::vector<std::string_view> arm_column_keys();

/// Throws InvalidArgument with the nearest key.
[[nodiscard]] const ArmColumn& find_arm_column(std::string_view key);

/// A measured value as the table writes it, with `digits` of its own or others; "-" for none.
[[nodiscard]] std::string column_text(const ArmColumn& column, const std::optional<double>& value,
                                      int digits = -1);

/// Every column measured over `runs`.
[[nodiscard]] std::vector<std::optional<double>> measure_columns(const std::vector<FinishedRun>& runs);

}  // namespace halfscope
