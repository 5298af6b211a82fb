// A whole run: from a config to a finished folder of results.
#pragma once

#include <cstdint>
#include <functional>

#include "sim/train/run_folder.hpp"

namespace halfscope {

/// Called after each step, for a status line.
using StepFunction = std::function<void(const StepRecord&)>;

/// Throws InvalidArgument where settings and data set do not fit each other, as far as one example shows it:
/// batch, model, labels, weights to start from unless an arm has them. Nothing is written.
void check_training(const RunSettings& settings, const Dataset& dataset);

/// Asked after each step; true where the run is to stop there.
using StopFunction = std::function<bool()>;

enum class RunEnd : std::uint8_t { done, stopped };

/// Trains as `settings` say and fills `folder`. A folder with a checkpoint is continued from there and ends
/// with the same bytes as an unbroken run; one that is done is left as it is. A run that diverges ends early
/// and is recorded as diverged. One that `should_stop` stops has saved a checkpoint, and the status STOPPED.
/// Throws RuntimeFailure where somebody else is training the run; InvalidArgument or RuntimeFailure, with the
/// folder's status FAILED, where it fails.
RunEnd run_training(const RunSettings& settings, const Dataset& dataset, const RunFolder& folder,
                    const StepFunction& after_step, const StopFunction& should_stop = {});

}  // namespace halfscope
