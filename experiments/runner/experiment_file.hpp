// Experiments as TOML files.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// Beside the results of an experiment that is not built in.
inline constexpr const char* definition_file = "experiment.toml";

/// The experiment that the file describes; docs/own-experiments.md lists its keys. `builtin` holds what
/// `base` may name. Throws InvalidArgument with line and column: for unknown keys (the nearest is offered),
/// values out of range, two arms of one name, an experiment without arms.
[[nodiscard]] Experiment read_experiment_file(const std::filesystem::path& path,
                                              std::span<const Experiment> builtin);

/// `experiment` as a file that reads back to it.
[[nodiscard]] std::string to_toml(const Experiment& experiment);

}  // namespace halfscope
