// Model, trackers, loss scaler, optimizer and learning rate of a run.
#include "sim/train/build.hpp"

#include <fmt/format.h>

#include <cmath>

#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/format/bits.hpp>

namespace halfscope {

DatasetSpec dataset_spec(const TrainConfig& config) {
  return {.data = config.data, .options = config.dataset_options};
}

ModelSpec model_spec(const RunSettings& settings, const Dataset& dataset) {
  const TrainConfig& config = settings.config;
  return {.example_shape = dataset.example_shape(),
          .class_count = dataset.class_count(),
          .token_count = dataset.token_count(),
          .text_labels = dataset.text_labels(),
          .seed = static_cast<std::uint64_t>(config.seed),
          .options = config.model_options,
          .teacher = settings.teacher};
}

Model make_model(const RunSettings& settings, const Dataset& dataset) {
  Model model = settings.model->kind.make(model_spec(settings, dataset));
  if (settings.teacher && !model.teacher)
    throw InvalidArgument(
        fmt::format("teacher = {}: model {} on the data set {} has none; distil_bert on masked_verses learns "
                    "from one, and "
                    "dcgan is judged by one",
                    settings.config.teacher, settings.model->name, settings.config.dataset));
  return model;
}

TrackerList make_trackers(const RunSettings& settings, WatchedSteps steps) {
  TrackerList trackers;
  for (const TrackerEntry* entry : settings.trackers) {
    auto tracker = entry->make({settings.observed_roles});
    if (tracker->watched_steps() == steps) trackers.push_back(std::move(tracker));
  }
  return trackers;
}

std::vector<std::unique_ptr<LossScaler>> make_loss_scalers(const RunSettings& settings, std::size_t losses) {
  std::vector<std::unique_ptr<LossScaler>> scalers;
  const std::size_t count = settings.loss_scalers == LossScalers::shared ? 1 : losses;
  while (scalers.size() < count) scalers.push_back(settings.scaler->make(settings.config.scaler_options));
  return scalers;
}

std::optional<LayerwiseOptions> layerwise_of(const LossScaler& scaler, const PrecisionPolicy& policy) {
  std::optional<LayerwiseOptions> options = scaler.layerwise();
  if (!options) return options;
  const FloatFormat& format = policy.quantizer(Role::activation_gradient).format;
  options->smallest = std::ldexp(1.0, format.lowest_exponent());
  options->largest = from_bits(format.max_finite_bits());
  return options;
}

std::unique_ptr<Optimizer> make_optimizer(const RunSettings& settings, const ParameterStore& parameters) {
  return settings.optimizer->kind.make(parameters,
                                       {.values = settings.config.optimizer_options,
                                        .state = settings.policy.quantizer(Role::optimizer_state),
                                        .moments = parse_moment_formats(settings.config.moments),
                                        .seed = static_cast<std::uint64_t>(settings.config.seed)});
}

double learning_rate(const RunSettings& settings, std::int64_t step) {
  const TrainConfig& config = settings.config;
  double rate = config.learning_rate;
  if (step < config.warmup_steps) {
    rate *= static_cast<double>(step + 1) / static_cast<double>(config.warmup_steps);
  }
  if (settings.schedule == Schedule::constant) return rate;
  if (settings.schedule == Schedule::linear) {
    if (step < config.warmup_steps) return rate;
    return rate * static_cast<double>(config.steps - step) /
           static_cast<double>(config.steps - config.warmup_steps);
  }
  constexpr double pi = 3.14159265358979323846;
  const double progress = static_cast<double>(step) / static_cast<double>(config.steps);
  return rate * 0.5 * (1 + cos(pi * progress));
}

}  // namespace halfscope
