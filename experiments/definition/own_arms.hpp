// Arms that a user adds to an experiment, one at a time or as a grid.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "experiments/definition/experiment.hpp"

namespace halfscope {

/// Throws InvalidArgument unless `name` can be a folder's and stand in a list with commas: up to 100
/// printable characters without '/', ',' and ':', and not "." or "..".
void check_folder_name(std::string_view kind, std::string_view name);

/// Appends `arm`; its setting `like` names an arm of `experiment` to start from. Throws InvalidArgument for a
/// second arm of one name and for settings that are unknown or out of range.
void add_arm(Experiment& experiment, Arm arm);

/// "NAME:KEY=VALUE,KEY=VALUE" as an arm; a comma that no KEY= follows belongs to the value. Throws
/// InvalidArgument.
[[nodiscard]] Arm parse_arm(const std::string& text);

/// A key and the values that it takes.
using GridAxis = std::pair<std::string, std::vector<std::string>>;

/// Appends an arm per point of the product of `axes`, the last axis fastest, called "KEY=VALUE+KEY=VALUE",
/// and marks the keys as varied. Throws InvalidArgument for an axis without values and for more than 10,000
/// points.
void add_grid(Experiment& experiment, const std::vector<GridAxis>& axes);

/// Gives `experiment` the tables and the verdict of `base`, the verdict on the arms only that train as in
/// `base`; none where the metric is another or no arm is left.
void take_verdict(Experiment& experiment, const Experiment& base);

/// Whether `experiment` says what `builtin` does: name, title, metric and arms, each with the same
/// configuration.
[[nodiscard]] bool is_same(const Experiment& experiment, const Experiment& builtin);

}  // namespace halfscope
