// Joins the settings of an experiment, an arm and a size.
#include "experiments/definition/arm_config.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace halfscope {
namespace {

/// Sizes at which every experiment takes seconds.
const Settings smoke_settings{{"steps", "4"},
                              {"batch", "4"},
                              {"warmup_steps", "1"},
                              {"image_size", "40"},
                              {"vocabulary", "200"},
                              {"sequence_length", "8"},
                              {"embedding_size", "16"},
                              {"hidden_size", "16"},
                              {"evaluate_every", "4"},
                              {"observe_every", "2"},
                              {"checkpoint_every", "2"},
                              {"evaluate_examples", "50"}};

/// Settings of an arm that a size changes.
Settings size_settings(const Experiment& experiment, const Arm& arm, RunSize size) {
  if (size == RunSize::small) return {};
  if (size == RunSize::smoke) return smoke_settings;
  return with(experiment.full_settings, arm.full_settings);
}

}  // namespace

TrainConfig arm_config(const Experiment& experiment, const Arm& arm, RunSize size) {
  TrainConfig config;
  try {
    for (const Settings& settings :
         {experiment.settings, arm.settings, size_settings(experiment, arm, size)}) {
      for (const auto& [key, value] : settings) set_field(config, key, value);
    }
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("arm {}: {}", arm.name, error.what()));
  }
  // A tiny batch has as many parts as examples.
  if (size == RunSize::smoke) {
    config.ranks = std::min(config.ranks, config.batch);
    config.micro_batches = std::min(config.micro_batches, config.batch / config.ranks);
  }
  return config;
}

}  // namespace halfscope
