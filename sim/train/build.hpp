// Makes the parts of a training run from its settings.
#pragma once

#include "sim/data/dataset.hpp"
#include "sim/tape/cast.hpp"
#include "sim/train/run_settings.hpp"

namespace halfscope {

[[nodiscard]] DatasetSpec dataset_spec(const TrainConfig& config);

/// Specification of the run's model for the examples of a data set.
[[nodiscard]] ModelSpec model_spec(const RunSettings& settings, const Dataset& dataset);

/// Throws InvalidArgument where the settings have a teacher and the model has none.
[[nodiscard]] Model make_model(const RunSettings& settings, const Dataset& dataset);

/// The run's trackers of such steps.
[[nodiscard]] TrackerList make_trackers(const RunSettings& settings, WatchedSteps steps);

/// One for each of so many losses, or one for all of them.
[[nodiscard]] std::vector<std::unique_ptr<LossScaler>> make_loss_scalers(const RunSettings& settings,
                                                                         std::size_t losses);
/// Options of layer-wise scales, if the scaler has such scales in a backward pass under `policy`: activation
/// gradients are to stay within their format.
[[nodiscard]] std::optional<LayerwiseOptions> layerwise_of(const LossScaler& scaler,
                                                           const PrecisionPolicy& policy);

[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const RunSettings& settings,
                                                        const ParameterStore& parameters);

/// The learning rate of `step`, counted from 0: constant, or half a cosine from the full rate down to 0;
/// grown linearly over the warm-up steps.
[[nodiscard]] double learning_rate(const RunSettings& settings, std::int64_t step);

}  // namespace halfscope
