// Experiments as TOML files.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "experiments/definition/experiment.hpp"

namespace halfscope {

/// Beside the results of an experiment that is not built in.
inline constexpr const char* definition_file = "experiment.toml";

/// Names that a file may use and that are defined elsewhere.
struct KnownNames {
  /// The experiment of a `base`; throws InvalidArgument for another name. Null: a file stands by itself.
  const Experiment& (*base)(std::string_view name) = nullptr;
  std::span<const std::string_view> analyses{};  ///< for `analyses`, and in a verdict
  std::span<const std::string_view> columns{};   ///< columns of the table of arms in a verdict
};

/// The experiment that the file describes; docs/guides/own-experiments.md lists its keys. Throws
/// InvalidArgument with line and column: for unknown keys and names (the nearest is offered), values out of
/// range, two arms of one name, an experiment without arms.
[[nodiscard]] Experiment read_experiment_file(const std::filesystem::path& path, const KnownNames& known);
/// Reads `text`; `path` stands for it in messages and names the experiment.
[[nodiscard]] Experiment read_experiment(std::string_view text, const std::filesystem::path& path,
                                         const KnownNames& known);

/// `experiment` as a file that reads back to it.
[[nodiscard]] std::string to_toml(const Experiment& experiment);

}  // namespace halfscope
