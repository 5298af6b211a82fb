// A run's settings: the texts of its config as the values that they name.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <halfscope/arithmetic/all_reduce.hpp>
#include <halfscope/arithmetic/gradient_division.hpp>
#include <halfscope/device/device.hpp>
#include <halfscope/scaling/scalers.hpp>
#include <halfscope/stats/trackers.hpp>

#include "sim/models/models.hpp"
#include "sim/optim/optimizers.hpp"
#include "sim/train/config.hpp"
#include "sim/train/policy_switch.hpp"
#include "sim/train/scale_probe.hpp"
#include "sim/train/second_execution.hpp"

namespace halfscope {

/// Made by `parsed`, once for each run.
struct RunSettings {
  /// With every policy setting and every option of its loss scaler written out: what config.json holds. Its
  /// numbers are used as they are.
  TrainConfig config{};
  Device device{};
  Execution execution{};
  PrecisionPolicy policy{};
  std::optional<PolicySwitch> later{};      ///< empty where the config names none
  std::optional<PrecisionPolicy> second{};  ///< that of the second execution; empty if the config names none
  std::vector<OperandRule> own_operands{};  ///< rules of the policy's that the config adds to a named one's
  Schedule schedule{};
  ClippedGradients clipped_gradients{};
  LossScalers loss_scalers{};
  Quantizer gradient_sum{};
  AllReduceModel all_reduce{};
  GradientDivision predivide{};
  GradientDetail recorded_gradients{};
  const ModelEntry* model = nullptr;
  const OptimizerEntry* optimizer = nullptr;
  const ScalerEntry* scaler = nullptr;   ///< config.scaler_options has a value for each of its options
  std::optional<ProbeOptions> probes{};  ///< empty where the config names no scale
  std::vector<FloatFormat> what_if_weights{};
  std::vector<const TrackerEntry*> trackers{};
  RoleSet observed_roles{};
  /// The weights that config.teacher names, once they are read; null where it names none.
  std::shared_ptr<const SafetensorsFile> teacher = nullptr;
};

/// Throws InvalidArgument for an unknown name and for settings that contradict each other: native execution
/// without a device or with formats that it lacks, an option that the loss scaler does not know.
[[nodiscard]] RunSettings parsed(const TrainConfig& config);

/// "all", "none", or names from the tracker table separated by commas.
[[nodiscard]] std::vector<const TrackerEntry*> parse_trackers(std::string_view names);

/// "all", or names of roles separated by commas.
[[nodiscard]] RoleSet parse_roles(std::string_view names);

}  // namespace halfscope
