// Makes the parts of a training run from its config.
#pragma once

#include <halfscope/scaling/scalers.hpp>

#include "sim/cast.hpp"
#include "sim/data/dataset.hpp"
#include "sim/optim/optimizer.hpp"
#include "sim/train/config.hpp"

namespace halfscope {

[[nodiscard]] DatasetSpec dataset_spec(const TrainConfig& config);

/// "all", "none", or names from the tracker table separated by commas.
[[nodiscard]] TrackerList make_trackers(std::string_view names, const TrackerOptions& options = {});

/// The config's trackers of such steps.
[[nodiscard]] TrackerList make_trackers(const TrainConfig& config, WatchedSteps steps);

/// "all", or names of roles separated by commas.
[[nodiscard]] RoleSet parse_roles(std::string_view names);

/// Every option of the config's scaler with its value. Throws InvalidArgument where the config sets one that
/// the scaler does not know.
[[nodiscard]] ScalerSettings resolved_scaler_options(const TrainConfig& config);
[[nodiscard]] std::unique_ptr<LossScaler> make_loss_scaler(const TrainConfig& config);
/// Of a backward pass under `policy`, where the scaler acts there: activation gradients are to stay within
/// their format.
[[nodiscard]] std::optional<LayerwiseOptions> layerwise_of(const LossScaler& scaler,
                                                           const PrecisionPolicy& policy);

[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const TrainConfig& config,
                                                        const ParameterStore& parameters);

/// The learning rate of `step`, counted from 0: constant, or half a cosine from the full rate down to 0;
/// grown linearly over the warm-up steps.
[[nodiscard]] double learning_rate(const TrainConfig& config, std::int64_t step);

}  // namespace halfscope
