// Trackers, loss scaler, optimizer and learning rate of a config.
#include "sim/train/build.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/stats/trackers.hpp>

#include "sim/optim/optimizers.hpp"

namespace halfscope {
namespace {

/// The number that a loss_scale is, if it is one. Throws InvalidArgument where it cannot be a scale.
std::optional<double> static_scale(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end == text.data() || end != text.data() + text.size()) return std::nullopt;
  const auto as_float = static_cast<float>(value);
  if (error != std::errc{} || !(as_float > 0) || !std::isfinite(as_float)) {
    throw InvalidArgument("give a positive number that FP32 holds, or a name of 'list scalers'");
  }
  return value;
}

/// Calls visit(name) for the names between commas; one empty name where there are none.
template <typename Visit>
void for_each_name(std::string_view names, Visit&& visit) {
  for (;;) {
    const std::size_t comma = names.find(',');
    visit(names.substr(0, comma));
    if (comma == std::string_view::npos) return;
    names = names.substr(comma + 1);
  }
}

}  // namespace

DatasetSpec dataset_spec(const TrainConfig& config) {
  return {.data = config.data,
          .image_size = config.image_size,
          .vocabulary = config.vocabulary,
          .sequence_length = config.sequence_length};
}

TrackerList make_trackers(std::string_view names, const TrackerOptions& options) {
  TrackerList trackers;
  if (names == "none") return trackers;
  if (names == "all") {
    for (const auto& entry : tracker_table) trackers.push_back(entry.make(options));
    return trackers;
  }
  for_each_name(names, [&](std::string_view name) {
    trackers.push_back(find_in_table("tracker", name, tracker_table).make(options));
  });
  return trackers;
}

TrackerList make_trackers(const TrainConfig& config, WatchedSteps steps) {
  TrackerList trackers = make_trackers(config.trackers, {parse_roles(config.observe_roles)});
  std::erase_if(trackers, [&](const auto& tracker) { return tracker->watched_steps() != steps; });
  return trackers;
}

RoleSet parse_roles(std::string_view names) {
  RoleSet roles{};
  if (names == "all") {
    for (const std::string_view name : enum_names<Role>) roles.add(parse_enum<Role>("role", name));
    return roles;
  }
  for_each_name(names, [&](std::string_view name) { roles.add(parse_enum<Role>("role", name)); });
  return roles;
}

const ScalerEntry& find_scaler(const std::string& loss_scale) {
  return find_in_table("loss scale", static_scale(loss_scale) ? "static" : loss_scale, scaler_table);
}

ScalerSettings resolved_scaler_options(const TrainConfig& config) {
  ScalerSettings settings = config.scaler_options;
  // config.json holds the number twice, so it may come back as both.
  if (const auto scale = static_scale(config.loss_scale)) {
    const double initial = settings.emplace("initial_scale", *scale).first->second;
    if (initial != *scale) {
      throw InvalidArgument(fmt::format("initial_scale = {:g}: loss_scale = {} is a constant; leave one out",
                                        initial, config.loss_scale));
    }
  }
  return resolve_options(find_scaler(config.loss_scale), settings);
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
