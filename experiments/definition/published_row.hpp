// A row of a table of the paper's.
#pragma once

#include <optional>
#include <string>

namespace halfscope {

/// The arms that stand for both of the row's numbers, and the numbers in the metric's unit; empty where the
/// paper has none.
struct PublishedRow {
  std::string name;
  std::string baseline, arm;
  std::optional<double> paper_baseline{}, paper_arm{};

  bool operator==(const PublishedRow&) const = default;
};

}  // namespace halfscope
