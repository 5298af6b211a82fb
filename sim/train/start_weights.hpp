// Weights of another run that a run begins with or learns from.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/io/safetensors/safetensors.hpp>

#include "sim/train/run_folder.hpp"
#include "sim/train/run_settings.hpp"

namespace halfscope {

/// A setting that names weights: a run's folder, a safetensors file, or arm:NAME.
struct WeightsSetting {
  std::string_view key;
  const std::string& value;

  /// NAME of "arm:NAME"; empty for a path.
  [[nodiscard]] std::optional<std::string> arm() const;
};

[[nodiscard]] inline WeightsSetting start_of(const TrainConfig& config) {
  return {"start_from", config.start_from};
}
[[nodiscard]] inline WeightsSetting teacher_of(const TrainConfig& config) {
  return {"teacher", config.teacher};
}

/// The arms of the same experiment whose runs a run needs: those of start_from and of teacher, each once.
[[nodiscard]] std::vector<std::string> source_arms(const TrainConfig& config);

/// The checkpoint that a setting names: a safetensors file, or that of a run's folder. Throws
/// InvalidArgument, naming the setting, where there is none.
[[nodiscard]] SafetensorsFile read_weights(const WeightsSetting& setting);
/// As above, for the run in `folder`: its setting may also name the arm of a run beside it with its seed.
[[nodiscard]] SafetensorsFile read_weights(const WeightsSetting& setting, const RunFolder& folder);

/// `settings` with the weights of its teacher, if it has one; without `folder`, of one that is no arm.
/// Throws as `read_weights` does.
[[nodiscard]] RunSettings with_teacher(RunSettings settings, const RunFolder* folder = nullptr);

}  // namespace halfscope
