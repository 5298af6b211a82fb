// Common part of all optimizers: named state and a count of steps.
#include "sim/optim/optimizer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <halfscope/core/error.hpp>

namespace halfscope {

Optimizer::Optimizer(const ParameterStore& store, const OptimizerOptions& options,
                     std::initializer_list<const char*> slots)
    : options_(options) {
  for (const Parameter& parameter : store.parameters) parameters_.push_back(parameter.name);
  for (const char* name : slots) {
    Slot& slot = slots_.emplace_back(Slot{name, {}});
    for (const Parameter& parameter : store.parameters)
      slot.arrays.push_back(Array::zeros(parameter.master.shape()));
  }
  choose_formats();
}

void Optimizer::choose_formats() {
  for (const MomentFormat& format : options_.moments) {
    bool found = false;
    for (Slot& slot : slots_) {
      if (format.slot != "*" && format.slot != slot.name) continue;
      slot.format = &format;
      found = true;
    }
    if (found) continue;
    std::vector<std::string_view> names;
    for (const Slot& slot : slots_) names.emplace_back(slot.name);
    throw InvalidArgument(
        fmt::format("moments: the optimizer has {}, not {}", fmt::join(names, " and "), format.slot));
  }
}

double Optimizer::decay(double learning_rate) const {
  const auto share = options_.values.find("weight_decay");
  return share == options_.values.end() ? 0 : learning_rate * share->second;
}

void Optimizer::begin_step(double learning_rate) {
  ++steps_;
  rule_ = rule(learning_rate);
}

void Optimizer::update(std::size_t index, const WeightUpdate& update) {
  const ParameterStep step = parameter_step(index, update);
  std::vector<std::span<float>> state;
  for (Slot& slot : slots_)
    if (!slot.arrays[index].empty()) state.push_back(slot.arrays[index].values());
  optimizer_step(step.update, step.rule, options_.state, state);
  for (Slot& slot : slots_) {
    if (slot.format == nullptr || slot.arrays[index].empty()) continue;
    const std::string name = slot.name + "." + parameters_[index];
    round_moment(*slot.format,
                 {options_.seed, static_cast<std::uint32_t>(steps_), site_hash(name.data(), name.size())},
                 slot.arrays[index]);
  }
}

std::vector<ArrayReference> Optimizer::state() {
  std::vector<ArrayReference> arrays;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    for (Slot& slot : slots_)
      if (!slot.arrays[i].empty()) arrays.push_back({slot.name + "." + parameters_[i], &slot.arrays[i]});
  }
  return arrays;
}

}  // namespace halfscope
