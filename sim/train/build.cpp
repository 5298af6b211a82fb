// Trackers, loss scaler, optimizer and learning rate of a config.
#include "sim/train/build.hpp"

#include <cmath>

#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/core/name_list.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/stats/trackers.hpp>

#include "sim/optim/optimizers.hpp"

namespace halfscope {

DatasetSpec dataset_spec(const TrainConfig& config) {
  return {.data = config.data,
          .image_size = config.image_size,
          .vocabulary = config.vocabulary,
          .sequence_length = config.sequence_length};
}

TrackerList make_trackers(std::string_view names, const TrackerOptions& options) {
  TrackerList trackers;
  if (names == "none") return trackers;
  for (const std::string_view name : names_in(names, table_names(tracker_table))) {
    trackers.push_back(find_in_table("tracker", name, tracker_table).make(options));
  }
  return trackers;
}

TrackerList make_trackers(const TrainConfig& config, WatchedSteps steps) {
  TrackerList trackers = make_trackers(config.trackers, {parse_roles(config.observe_roles)});
  std::erase_if(trackers, [&](const auto& tracker) { return tracker->watched_steps() != steps; });
  return trackers;
}

RoleSet parse_roles(std::string_view names) {
  RoleSet roles{};
  for (const std::string_view name : names_in(names, enum_names<Role>)) {
    roles.add(parse_enum<Role>("role", name));
  }
  return roles;
}

ScalerSettings resolved_scaler_options(const TrainConfig& config) {
  return resolve_options(config.loss_scale, config.scaler_options);
}

std::unique_ptr<LossScaler> make_loss_scaler(const TrainConfig& config) {
  return find_scaler(config.loss_scale).make(resolved_scaler_options(config));
}

std::optional<LayerwiseOptions> layerwise_of(const LossScaler& scaler, const PrecisionPolicy& policy) {
  std::optional<LayerwiseOptions> options = scaler.layerwise();
  if (!options) return options;
  const FloatFormat& format = policy.quantizer(Role::activation_gradient).format;
  options->smallest = std::ldexp(1.0, format.lowest_exponent());
  options->largest = from_bits(format.max_finite_bits());
  return options;
}

std::unique_ptr<Optimizer> make_optimizer(const TrainConfig& config, const ParameterStore& parameters) {
  const OptimizerOptions options{.momentum = config.momentum,
                                 .beta1 = config.beta1,
                                 .beta2 = config.beta2,
                                 .epsilon = config.epsilon,
                                 .state = resolve_policy(config).quantizer(Role::optimizer_state)};
  return find_in_table("optimizer", config.optimizer, optimizer_table).make(parameters, options);
}

double learning_rate(const TrainConfig& config, std::int64_t step) {
  double rate = config.learning_rate;
  if (step < config.warmup_steps) {
    rate *= static_cast<double>(step + 1) / static_cast<double>(config.warmup_steps);
  }
  if (parse_enum<Schedule>("schedule", config.schedule) == Schedule::constant) return rate;
  constexpr double pi = 3.14159265358979323846;
  const double progress = static_cast<double>(step) / static_cast<double>(config.steps);
  return rate * 0.5 * (1 + cos(pi * progress));
}

}  // namespace halfscope
