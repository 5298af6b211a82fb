// Delayed scales after a step, and as arrays of a checkpoint.
#include "sim/tape/operand_scales.hpp"

#include <algorithm>

#include <halfscope/core/error.hpp>

namespace halfscope {
float OperandScales::scale(const std::string& operand) const {
  const auto found = scales_.find(operand);
  return found == scales_.end() ? DelayedScale{}.scale : found->second.scale;
}

void OperandScales::update(const OperandMaxima& step) {
  for (const auto& [operand, seen] : step) scales_[operand].update(seen.amax, seen.largest, seen.options);
}

std::map<std::string, Array> OperandScales::state() const {
  std::map<std::string, Array> arrays;
  for (const auto& [operand, delayed] : scales_) {
    Array state({1 + std::ssize(delayed.history)}, Device::cpu);
    state[0] = delayed.scale;
    std::ranges::copy(delayed.history, state.values().begin() + 1);
    arrays.emplace(operand, std::move(state));
  }
  return arrays;
}

void OperandScales::restore(const std::string& operand, const Array& state) {
  if (state.shape().size() != 1 || state.size() < 1 || state.dtype() != DType::f32)
    throw InvalidArgument("the scale of operand " + operand + " has shape " + to_string(state.shape()) +
                          "; it is a row of floats");
  const std::span<const float> values = state.values();
  scales_[operand] = {values.front(), {values.begin() + 1, values.end()}};
}

}  // namespace halfscope
