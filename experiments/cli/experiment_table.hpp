// The experiments that are compiled in: definitions/NAME.toml, one each.
#pragma once

#include <string_view>
#include <vector>

#include "experiments/definition/experiment_file.hpp"

namespace halfscope {

/// In the order of the paper's sections: the master copy, loss scaling, reductions; by their places.
[[nodiscard]] const std::vector<Experiment>& experiment_table();

/// The experiment of a name, without reading the others; nullptr where there is none.
[[nodiscard]] const Experiment* built_in(std::string_view name);

/// The same. Throws InvalidArgument with the nearest name where there is none.
[[nodiscard]] const Experiment& built_in_experiment(std::string_view name);

/// Names that a definition may use: of built-in experiments, analyses and columns.
[[nodiscard]] KnownNames known_names();

/// The text of definitions/NAME.toml. Throws InvalidArgument with the nearest name where there is none.
[[nodiscard]] std::string_view definition_text(std::string_view name);

}  // namespace halfscope
