// Common part of all optimizers: named state and a count of steps.
#include "sim/optim/optimizer.hpp"

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
}

void Optimizer::begin_step(double learning_rate) {
  ++steps_;
  rule_ = rule(learning_rate);
}

void Optimizer::update(std::size_t index, const WeightUpdate& update) {
  std::vector<std::span<float>> state;
  for (Slot& slot : slots_) state.push_back(slot.arrays[index].values());
  optimizer_step(update, rule_, options_.state, state);
}

std::vector<ArrayReference> Optimizer::state() {
  std::vector<ArrayReference> arrays;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    for (Slot& slot : slots_) arrays.push_back({slot.name + "." + parameters_[i], &slot.arrays[i]});
  }
  return arrays;
}

}  // namespace halfscope
