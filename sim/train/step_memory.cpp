// Builds a run's model without weights and counts what its tape holds.
#include "sim/train/step_memory.hpp"

#include <nlohmann/json.hpp>

#include "sim/train/build.hpp"
#include "sim/train/recorded_keys.hpp"

namespace halfscope {
namespace {

/// One parameter tells how many arrays an optimizer keeps of each.
std::int64_t states_per_parameter(const RunSettings& settings) {
  ParameterStore store;
  store.add("parameter", Array({1}));
  return std::ssize(make_optimizer(settings, store)->state());
}

/// Counts do not depend on how products add up, and FP32's products need no device.
PrecisionPolicy for_counting(PrecisionPolicy policy) {
  policy.products = fp32_policy().products;
  return policy;
}

/// A detector's boxes follow its weights, and what it keeps of an example follows the boxes.
void zero_weights(const Model& model) {
  const auto zero = [](ParameterStore& store) {
    for (Parameter& parameter : store.parameters) parameter.master = Array::zeros(parameter.master.shape());
  };
  zero(*model.store);
  for (const Objective& objective : model.further) zero(*objective.store);
}

NetworkElements network_of(const RunSettings& settings, const Dataset& dataset) {
  ModelSpec spec = model_spec(settings, dataset);
  spec.initial = InitialWeights::unset;
  spec.teacher = nullptr;
  const auto make_batch = [&](std::int64_t count) {
    return dataset.batch(Split::train, std::vector<std::int64_t>(static_cast<std::size_t>(count), 0));
  };
  const Model model = settings.model->kind.make(spec);
  zero_weights(model);
  const TrainConfig& config = settings.config;
  return count_elements(
      model, make_batch,
      {config.batch / config.parts.micro_batches, for_counting(settings.policy), config.checkpoint_segments});
}

}  // namespace

StepMemory step_memory(const RunSettings& settings, const Dataset& dataset, KeptOutputs kept) {
  const DeviceScope here(Device::cpu);
  StepMemory memory{network_of(settings, dataset), {}};
  MemoryOptions options{settings.policy, states_per_parameter(settings), kept};
  if (settings.config.parts.micro_batches > 1) options.gradient_sum = settings.gradient_sum.format;
  memory.items = memory_of(memory.network, options);
  return memory;
}

RunSettings in_fp32(RunSettings settings) {
  settings.policy = fp32_policy();
  settings.gradient_sum = {};
  return settings;
}

Json to_json(const std::vector<MemoryItem>& items) {
  Json roles = Json::array();
  for (const MemoryItem& item : items) {
    roles.push_back({{"role", recorded_key(item.name)},
                     {"format", item.format},
                     {"elements", item.elements},
                     {"bytes", item.bytes}});
  }
  return {{"roles", std::move(roles)}, {"peak_step_bytes", total_bytes(items)}};
}

}  // namespace halfscope
