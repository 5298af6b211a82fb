// Runs as a list: what they are and how far they are.
#pragma once

#include <string>

#include <halfscope/io/json/json_lines.hpp>

#include "experiments/run/plan.hpp"

namespace halfscope {

/// {runs: [{experiment, arm, seed, folder, state, steps, config_hash}]}. state: new, done, unfinished, or
/// other_settings where the folder holds a run that was asked for differently. config_hash: name-based UUID
/// (version 5, URL namespace) of the bytes of config.json; equal hashes are equal runs.
[[nodiscard]] Json run_matrix(const std::vector<PlannedRun>& planned);

/// A line per run, with its experiment if there are several.
[[nodiscard]] std::string to_table(const Json& matrix);

}  // namespace halfscope
