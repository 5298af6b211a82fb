// Common part of all optimizers: named state and a count of steps.
#include "sim/optim/optimizer.hpp"

namespace halfscope {

Optimizer::Optimizer(const ParameterStore& store, std::initializer_list<const char*> slots) {
  for (const Parameter& parameter : store.parameters) parameters_.push_back(parameter.name);
  for (const char* name : slots) {
    Slot& slot = slots_.emplace_back(Slot{name, {}});
    for (const Parameter& parameter : store.parameters)
      slot.arrays.push_back(Array::zeros(parameter.master.shape()));
  }
}

void Optimizer::begin_step(double learning_rate) {
  ++steps_;
  prepare(learning_rate);
}

std::vector<ArrayReference> Optimizer::state() {
  std::vector<ArrayReference> arrays;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    for (Slot& slot : slots_) arrays.push_back({slot.name + "." + parameters_[i], &slot.arrays[i]});
  }
  return arrays;
}

}  // namespace halfscope
