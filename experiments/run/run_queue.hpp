// Trains planned runs, several at a time.
#pragma once

#include <string>
#include <vector>

#include "experiments/run/plan.hpp"

namespace halfscope {

/// Takes the runs in their order, `jobs` at a time, each in a thread, and prints progress on stderr. A run
/// that fails does not stop the others. Returns a line for each that failed: the run and its reason. Throws
/// StoppedBySignal where StopSignals has taken one down: runs in training have ended their step and saved a
/// checkpoint, later ones have not begun.
[[nodiscard]] std::vector<std::string> train_runs(const std::vector<PlannedRun>& runs, std::size_t jobs);

}  // namespace halfscope
