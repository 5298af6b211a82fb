// Look-ups in a summary.
#include "experiments/results/summary.hpp"

#include <algorithm>

#include "experiments/results/arm_columns.hpp"

namespace halfscope {

std::optional<double> ArmSummary::column(std::string_view key) const {
  const ArmColumn& found = find_arm_column(key);
  const auto place = static_cast<std::size_t>(&found - arm_columns().data());
  return place < columns.size() ? columns[place] : std::nullopt;
}

const ArmSummary* ExperimentSummary::find(std::string_view name) const {
  const auto found = std::ranges::find(arms, name, &ArmSummary::arm);
  return found == arms.end() ? nullptr : &*found;
}

}  // namespace halfscope
