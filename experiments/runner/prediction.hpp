// The tracker's prediction beside what happened: flushed fractions from FP32's histograms, and as counted.
#pragma once

#include <filesystem>

#include "experiments/runner/experiment.hpp"

namespace halfscope {

/// For every arm in `folder` = DIR/<experiment> other than `baseline`, per gradient tensor: the share that
/// its loss scale should flush, from the baseline's histogram of the same seed at the first step, and the
/// share that was counted. Arms whose scale is no power of two, and runs without records, are left out.
[[nodiscard]] std::vector<UnderflowPrediction> predict_underflow(const Experiment& experiment,
                                                                 const std::filesystem::path& folder);

}  // namespace halfscope
