// The experiment that a command line or a folder of results names.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/definition/experiment.hpp"

namespace halfscope {

/// A built-in experiment by its name, or that of a file, which ends in ".toml". Throws InvalidArgument.
[[nodiscard]] Experiment find_experiment(const std::string& name_or_file);

/// `experiment` with arms of its own, "NAME:KEY=VALUE,...". Throws InvalidArgument.
[[nodiscard]] Experiment with_arms(Experiment experiment, const std::vector<std::string>& arms);

/// `experiment` with the arms that only the experiment.toml of `folder` has, which earlier requests left
/// there; nothing for an experiment that is built in.
[[nodiscard]] std::optional<Experiment> with_earlier_arms(const Experiment& experiment,
                                                          const std::filesystem::path& folder);

/// The experiment whose results lie in `folder`: of its experiment.toml, or built in and called like the
/// folder; nothing for any other folder.
[[nodiscard]] std::optional<Experiment> experiment_of(const std::filesystem::path& folder);

}  // namespace halfscope
