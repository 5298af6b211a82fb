// Weights of another run that a run begins with.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <halfscope/io/safetensors/safetensors.hpp>

#include "sim/train/run_folder.hpp"

namespace halfscope {

/// NAME of "arm:NAME", as the setting start_from has it; empty for a path.
[[nodiscard]] std::optional<std::string> start_arm(std::string_view start_from);

/// The checkpoint that start_from names: a safetensors file, or that of a run's folder. Throws
/// InvalidArgument, naming the setting, where there is none.
[[nodiscard]] SafetensorsFile read_start(const std::string& start_from);
/// The same of the run in `folder`, where start_from may also name the arm of a run beside it with its seed.
[[nodiscard]] SafetensorsFile read_start(const std::string& start_from, const RunFolder& folder);

}  // namespace halfscope
