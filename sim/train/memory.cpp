// Counts what a tape holds, and what that takes in each role's format.
#include "sim/train/memory.hpp"

#include <algorithm>
#include <set>

#include <halfscope/format/quantizer.hpp>

namespace halfscope {
namespace {

/// Each operation with the parameters that stand before it.
std::vector<LayerElements> layers_of(const Model& model, const Batch& batch) {
  TrackerList nobody;
  Caster caster(fp32_policy(), 0, nobody);
  caster.begin_step({});
  Tape tape(caster, Phase::training);
  (void)model.forward(tape, batch);
  std::vector<LayerElements> layers;
  std::set<const Parameter*> seen;
  std::int64_t parameters = 0;
  for (const TapeEntry& entry : tape.entries()) {
    if (entry.parameter != nullptr) {
      if (seen.insert(entry.parameter).second) parameters += entry.elements;
      continue;
    }
    layers.push_back({std::string(entry.name), entry.kind, parameters, entry.elements});
    parameters = 0;
  }
  return layers;
}

std::int64_t bytes_per_element(const FloatFormat& format) {
  const int bits = 1 + format.exponent_bits + format.mantissa_bits;
  return bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
}

std::int64_t largest_pair(const std::vector<LayerElements>& layers) {
  std::int64_t largest = 0, before = 0;
  for (const LayerElements& layer : layers) {
    largest = std::max(largest, before + layer.outputs);
    before = layer.outputs;
  }
  return largest;
}

}  // namespace

std::int64_t NetworkElements::parameters() const {
  std::int64_t sum = 0;
  for (const LayerElements& layer : layers) sum += layer.parameters;
  return sum;
}

NetworkElements count_elements(const Model& model, const std::function<Batch(std::int64_t)>& make_batch,
                               std::int64_t batch) {
  NetworkElements network;
  for (const Buffer& buffer : model.store->buffers)
    network.statistics += static_cast<std::int64_t>(buffer.value.size());
  network.layers = layers_of(model, make_batch(1));
  const std::vector<LayerElements> of_two = layers_of(model, make_batch(2));
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    std::int64_t& outputs = network.layers[i].outputs;
    outputs += (batch - 1) * (of_two.at(i).outputs - outputs);
  }
  return network;
}

bool is_kept(OperationKind kind, KeptOutputs kept) {
  if (kept == KeptOutputs::all) return true;
  return kind == OperationKind::convolution || kind == OperationKind::residual_sum;
}

std::vector<MemoryItem> memory_of(const NetworkElements& network, const MemoryOptions& options) {
  std::vector<MemoryItem> items;
  const auto add = [&](std::string_view name, const FloatFormat& format, std::int64_t elements) {
    if (elements == 0) return;
    items.push_back({std::string(name), to_string(format), elements, elements * bytes_per_element(format)});
  };
  const auto add_role = [&](Role role, std::int64_t elements) {
    add(name_of(role), options.policy.quantizer(role).format, elements);
  };
  const std::int64_t parameters = network.parameters();
  const FloatFormat& weight = options.policy.quantizer(Role::weight).format;
  add_role(Role::weight, parameters);
  if (options.policy.quantizer(Role::master_weight).format != weight)
    add_role(Role::master_weight, parameters);
  add("running_statistics", fp32, network.statistics);
  add_role(Role::weight_gradient, parameters);
  add_role(Role::optimizer_state, parameters * options.states_per_parameter);
  std::int64_t kept = 0;
  for (const LayerElements& layer : network.layers)
    if (is_kept(layer.kind, options.kept)) kept += layer.outputs;
  add_role(Role::activation, kept);
  add_role(Role::activation_gradient, largest_pair(network.layers));
  return items;
}

std::int64_t total_bytes(const std::vector<MemoryItem>& items) {
  std::int64_t sum = 0;
  for (const MemoryItem& item : items) sum += item.bytes;
  return sum;
}

}  // namespace halfscope
