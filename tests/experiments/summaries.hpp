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

/// An arm with a value for each of the seeds 0, 1, ...; nothing where it diverged, at step 17.
inline ArmSummary arm_of_seeds(std::string name, std::vector<std::optional<double>> values) {
  ArmSummary arm{.arm = std::move(name), .values = std::move(values)};
  double sum = 0;
  for (std::size_t i = 0; i < arm.values.size(); ++i) {
    arm.seeds.push_back(static_cast<std::int64_t>(i));
    sum += arm.values[i].value_or(0);
    arm.diverged += arm.values[i] ? 0 : 1;
  }
  const auto finished = std::ssize(arm.values) - arm.diverged;
  if (finished > 0) arm.mean = sum / static_cast<double>(finished);
  if (arm.diverged > 0) arm.diverged_step = 17;
  return arm;
}

/// An arm of one seed.
inline ArmSummary arm_with(std::string name, std::optional<double> mean) {
  return {.arm = std::move(name), .seeds = {0}, .values = {mean}, .mean = mean};
}

/// An arm whose three seeds end alike.
inline ArmSummary steady_arm(std::string name, double value) {
  return arm_of_seeds(std::move(name), {value, value, value});
}

/// An arm `seeds` of whose `all` seeds diverged, first at step 17.
inline ArmSummary diverged_arm(std::string name, std::int64_t seeds, std::int64_t all,
                               std::optional<double> mean = {}) {
  ArmSummary arm =
      arm_of_seeds(std::move(name), std::vector<std::optional<double>>(static_cast<std::size_t>(all)));
  for (std::int64_t i = seeds; i < all; ++i) arm.values[static_cast<std::size_t>(i)] = mean;
  arm.mean = mean;
  arm.diverged = seeds;
  return arm;
}

}  // namespace halfscope
