// Settings of finished runs that are not the experiment's own.
#pragma once

#include <span>

#include "experiments/results/run_records.hpp"

namespace halfscope {

/// Compares the configurations of `runs`, per arm of `experiment`, with the arms' own at the size that they
/// are nearest to. Settings that no result depends on, the data's folder, the device and when checkpoints are
/// written, are left out.
[[nodiscard]] ComparedSettings compare_settings(const Experiment& experiment, std::span<const ArmRuns> runs);

/// Keys in which the runs of one arm differ from each other and that change what is trained.
[[nodiscard]] std::vector<std::string> keys_that_differ(const std::vector<FinishedRun>& runs);

/// "steps = 60 (own: 600) in fp16_mixed; batch = 8 (own: 4)".
[[nodiscard]] std::string to_string(const std::vector<SettingDifference>& differences);

}  // namespace halfscope
