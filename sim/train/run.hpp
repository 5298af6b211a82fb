// A whole run: from a config to a finished folder of results.
#pragma once

#include <functional>

#include "sim/train/run_folder.hpp"

namespace halfscope {

/// Called after each step, for a status line; `seconds` is the time spent on steps since this process began
/// the run.
struct RunProgress {
  const RunIdentity& identity;
  const StepRecord& record;
  std::int64_t steps = 0;
  double seconds = 0;
};
using ProgressFunction = std::function<void(const RunProgress&)>;

/// Throws InvalidArgument where settings and data set do not fit each other, as far as one example shows it:
/// batch, model, labels. Nothing is written.
void check_training(const RunSettings& settings, const Dataset& dataset);

/// Trains as `settings` say and fills `folder`. A folder with a checkpoint is continued from there and ends
/// with the same bytes as an unbroken run; one that is done is left as it is. A run that diverges ends early
/// and is recorded as diverged. Throws InvalidArgument or RuntimeFailure, with the folder's status FAILED.
void run_training(const RunSettings& settings, const Dataset& dataset, const RunFolder& folder,
                  const ProgressFunction& progress);

}  // namespace halfscope
