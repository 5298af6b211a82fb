// Counts what a tape holds, and what that takes in each role's format.
#include "sim/train/memory.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <halfscope/format/quantizer.hpp>

namespace halfscope {
namespace {

/// Parameters that stand before an operation, each counted at its first place.
class FirstUses {
 public:
  void add(const TapeEntry& entry, LayerElements& layer) {
    if (seen_.insert(entry.parameter).second) layer.parameters += entry.elements;
    if (entry.precision == Precision::reduced && reduced_.insert(entry.parameter).second)
      layer.reduced_parameters += entry.elements;
  }

 private:
  std::set<const Parameter*> seen_, reduced_;
};

/// Adds each operation on a tape with the parameters that stand before it.
void add_layers(const Tape& tape, std::size_t loss, FirstUses& uses, std::vector<LayerElements>& layers) {
  LayerElements layer;
  for (const TapeEntry& entry : tape.entries()) {
    if (entry.parameter != nullptr) {
      uses.add(entry, layer);
      continue;
    }
    layer.name = entry.name;
    layer.kind = entry.kind();
    layer.outputs = entry.elements;
    layer.precision = entry.precision;
    layer.loss = loss;
    layer.segment = entry.segment;
    layers.push_back(std::exchange(layer, {}));
  }
}

/// Drops the outputs behind the last checkpoint, as a segment does before it runs again.
void end_segments(std::size_t loss, std::vector<LayerElements>& layers) {
  const auto is_dropped = [&](const LayerElements& layer) { return layer.loss == loss && layer.segment > 0; };
  const auto last = std::ranges::find_if(layers.rbegin(), layers.rend(), is_dropped);
  if (last == layers.rend()) return;
  // Right behind it is the segment's output, the checkpoint.
  for (auto behind = last.base() + 1; behind < layers.end(); ++behind) behind->segment = last->segment + 1;
}

/// Layers of every loss.
std::vector<LayerElements> layers_of(const Model& model, const Batch& batch, const StepSize& size) {
  TrackerList nobody;
  Caster caster(size.policy, 0, nobody);
  caster.begin_step({});
  std::vector<LayerElements> layers;
  FirstUses uses;
  Tape first(caster, Phase::training, {.segments = size.segments});
  (void)model.forward(first, batch);
  add_layers(first, 0, uses, layers);
  end_segments(0, layers);
  for (std::size_t i = 0; i < model.further.size(); ++i) {
    Tape tape(caster, Phase::training, {.segments = size.segments});
    (void)model.further[i].loss(tape, batch);
    add_layers(tape, i + 1, uses, layers);
    end_segments(i + 1, layers);
  }
  return layers;
}

std::int64_t bytes_per_element(const FloatFormat& format) {
  const int bits = 1 + format.exponent_bits + format.mantissa_bits;
  return bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
}

/// Elements in the format of a role, and in FP32.
struct Elements {
  std::int64_t reduced = 0, fp32 = 0;

  void add(const LayerElements& layer) {
    (layer.precision == Precision::reduced ? reduced : fp32) += layer.outputs;
  }
  [[nodiscard]] std::int64_t bytes(const FloatFormat& format) const {
    return reduced * bytes_per_element(format) + fp32 * 4;
  }
};

/// Elements that the forward pass of one loss keeps, and each segment that it leaves to the backward pass.
struct KeptOfLoss {
  Elements kept{};
  std::map<std::size_t, Elements> segments{};

  void add(const LayerElements& layer) { (layer.segment == 0 ? kept : segments[layer.segment]).add(layer); }
  /// One segment at a time is there beside what is kept.
  [[nodiscard]] Elements most(const FloatFormat& format) const {
    Elements largest;
    for (const auto& [index, segment] : segments) {
      if (segment.bytes(format) > largest.bytes(format)) largest = segment;
    }
    return {kept.reduced + largest.reduced, kept.fp32 + largest.fp32};
  }
};

/// Outputs of the loss that keeps most.
Elements kept_outputs(const NetworkElements& network, KeptOutputs kept, const FloatFormat& format) {
  std::map<std::size_t, KeptOfLoss> of_losses;
  for (const LayerElements& layer : network.layers) {
    if (is_kept(layer.kind, kept)) of_losses[layer.loss].add(layer);
  }
  Elements largest;
  for (const auto& [loss, own] : of_losses) {
    const Elements most = own.most(format);
    if (most.bytes(format) > largest.bytes(format)) largest = most;
  }
  return largest;
}

/// The two consecutive outputs that are largest together.
Elements largest_pair(const std::vector<LayerElements>& layers, const FloatFormat& format) {
  Elements largest;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Elements pair;
    pair.add(layers[i]);
    if (i > 0 && layers[i - 1].loss == layers[i].loss) pair.add(layers[i - 1]);
    if (pair.bytes(format) > largest.bytes(format)) largest = pair;
  }
  return largest;
}

/// The account while it grows.
struct Items {
  const PrecisionPolicy& policy;
  std::vector<MemoryItem> items{};

  void add(std::string_view name, const FloatFormat& format, std::int64_t elements) {
    if (elements == 0) return;
    items.push_back({std::string(name), to_string(format), elements, elements * bytes_per_element(format)});
  }
  void add(Role role, const Elements& elements) {
    const FloatFormat& format = policy.quantizer(role).format;
    if (format == fp32) return add(name_of(role), fp32, elements.reduced + elements.fp32);
    add(name_of(role), format, elements.reduced);
    add(name_of(role), fp32, elements.fp32);
  }
};

/// Weights, master copy and weight gradients.
void add_parameters(const NetworkElements& network, Items& items) {
  const PrecisionPolicy& policy = items.policy;
  const std::int64_t all = network.parameters(), reduced = network.reduced_parameters();
  const bool stored_fp32 = policy.parameters == StoredParameters::fp32;
  const bool has_master =
      policy.quantizer(Role::master_weight).format != policy.quantizer(Role::weight).format;
  items.add(Role::weight, {reduced, stored_fp32 && has_master ? 0 : all - reduced});
  if (has_master) items.add(Role::master_weight, {stored_fp32 ? all : reduced, 0});
  items.add("running_statistics", fp32, network.statistics);
  items.add(Role::weight_gradient, stored_fp32 ? Elements{0, all} : Elements{reduced, all - reduced});
}

}  // namespace

std::int64_t NetworkElements::parameters() const {
  std::int64_t sum = 0;
  for (const LayerElements& layer : layers) sum += layer.parameters;
  return sum;
}

std::int64_t NetworkElements::reduced_parameters() const {
  std::int64_t sum = 0;
  for (const LayerElements& layer : layers) sum += layer.reduced_parameters;
  return sum;
}

NetworkElements count_elements(const Model& model, const std::function<Batch(std::int64_t)>& make_batch,
                               const StepSize& size) {
  NetworkElements network;
  const auto add_statistics = [&](const ParameterStore& store) {
    for (const Buffer& buffer : store.buffers)
      network.statistics += static_cast<std::int64_t>(buffer.value.size());
  };
  add_statistics(*model.store);
  for (const Objective& objective : model.further) add_statistics(*objective.store);
  network.layers = layers_of(model, make_batch(1), size);
  const std::vector<LayerElements> of_two = layers_of(model, make_batch(2), size);
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    std::int64_t& outputs = network.layers[i].outputs;
    outputs += (size.batch - 1) * (of_two.at(i).outputs - outputs);
  }
  return network;
}

bool is_kept(OperationKind kind, KeptOutputs kept) {
  if (kept == KeptOutputs::all) return true;
  return kind == OperationKind::convolution || kind == OperationKind::residual_sum;
}

std::vector<MemoryItem> memory_of(const NetworkElements& network, const MemoryOptions& options) {
  Items items{options.policy};
  add_parameters(network, items);
  if (options.gradient_sum) items.add("gradient_sum", *options.gradient_sum, network.parameters());
  items.add(Role::optimizer_state, {network.parameters() * options.states_per_parameter, 0});
  const auto format = [&](Role role) { return options.policy.quantizer(role).format; };
  items.add(Role::activation, kept_outputs(network, options.kept, format(Role::activation)));
  items.add(Role::activation_gradient, largest_pair(network.layers, format(Role::activation_gradient)));
  return std::move(items.items);
}

std::int64_t total_bytes(const std::vector<MemoryItem>& items) {
  std::int64_t sum = 0;
  for (const MemoryItem& item : items) sum += item.bytes;
  return sum;
}

}  // namespace halfscope
