// Results of arms made by hand, for the tests of what shows and compares them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/results/arm_columns.hpp"
#include "experiments/results/summary.hpp"

namespace halfscope {

inline void set_column(ArmSummary& arm, std::string_view key, double value) {
  const ArmColumn& column = find_arm_column(key);
  arm.columns.resize(arm_columns().size());
  arm.columns[static_cast<std::size_t>(&column - arm_columns().data())] = value;
}

/// Measured columns of an arm, empty but for `values`.
inline std::vector<std::optional<double>> columns_with(const std::map<std::string_view, double>& values) {
  ArmSummary arm;
  arm.columns.resize(arm_columns().size());
  for (const auto& [key, value] : values) set_column(arm, key, value);
  return arm.columns;
}

/// An arm of one seed.
inline ArmSummary arm_with(std::string name, std::optional<double> mean) {
  return {.arm = std::move(name), .values = {mean}, .mean = mean};
}

/// An arm `seeds` of whose `all` seeds diverged, first at step 17.
inline ArmSummary diverged_arm(std::string name, std::int64_t seeds, std::int64_t all,
                               std::optional<double> mean = {}) {
  ArmSummary arm = arm_with(std::move(name), mean);
  arm.values.resize(static_cast<std::size_t>(all));
  arm.diverged = seeds;
  arm.diverged_step = 17;
  return arm;
}

}  // namespace halfscope
