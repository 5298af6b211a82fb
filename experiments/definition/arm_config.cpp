// Joins the settings of an experiment, an arm and a size.
#include "experiments/definition/arm_config.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/train/entry_tables.hpp"

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

/// Every option goes to the arms whose entries take it. A tiny batch has as many parts as examples.
void make_smoke(TrainConfig& config) {
  const auto is_foreign = [&](const std::string& key) {
    return std::ranges::any_of(
        entry_tables(), [&](const EntryTable& table) { return table.is_foreign(key, config.*table.chosen); });
  };
  for (const auto& [key, value] : smoke_settings)
    if (!is_foreign(key)) set_field(config, key, value);
  config.parts.ranks = std::min(config.parts.ranks, config.batch);
  config.parts.micro_batches = std::min(config.parts.micro_batches, config.batch / config.parts.ranks);
}

}  // namespace

TrainConfig arm_config(const Experiment& experiment, const Arm& arm, RunSize size) {
  TrainConfig config;
  try {
    change(config, experiment.settings);
    change(config, arm.settings);
    if (size == RunSize::full) change(config, with(experiment.full_settings, arm.full_settings));
    if (size == RunSize::smoke) make_smoke(config);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("arm {}: {}", arm.name, error.what()));
  }
  return config;
}

}  // namespace halfscope
