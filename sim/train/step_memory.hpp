// Memory of a run's step, as `halfscope memory` prints it and summary.json keeps it.
#pragma once

#include <halfscope/io/json/json_lines.hpp>

#include "sim/train/memory.hpp"
#include "sim/train/run_settings.hpp"

namespace halfscope {

/// Elements by layer, and bytes by role under the settings' policy.
struct StepMemory {
  NetworkElements network;
  std::vector<MemoryItem> items;
};

/// Counted on the CPU with two examples of `dataset`, so that no device, thread or earlier step changes it.
/// One micro-batch is in memory at a time, and beside it the sum of the gradients. A teacher is not counted.
/// Throws InvalidArgument as the model does.
[[nodiscard]] StepMemory step_memory(const RunSettings& settings, const Dataset& dataset,
                                     KeptOutputs kept = KeptOutputs::all);

/// The same run with every number in FP32.
[[nodiscard]] RunSettings in_fp32(RunSettings settings);

/// {roles: [{role, format, elements, bytes}], peak_step_bytes}: the rows, and what they take together.
[[nodiscard]] Json to_json(const std::vector<MemoryItem>& items);

}  // namespace halfscope
