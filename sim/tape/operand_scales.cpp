// Scales from largest magnitudes, in FP32 as TransformerEngine computes them.
#include "sim/tape/operand_scales.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <halfscope/core/error.hpp>

namespace halfscope {
namespace {

float finite_quotient(float largest, float amax) {
  return std::min(largest / amax, std::numeric_limits<float>::max());
}

bool has_scale(float amax) {
  return amax > 0 && std::isfinite(amax);
}

float chosen_magnitude(const std::vector<float>& history, AmaxChoice choice) {
  if (choice == AmaxChoice::most_recent) return history.front();
  float largest = 0;
  for (const float amax : history) largest = std::fmax(largest, amax);
  return largest;
}

}  // namespace

float current_scale(float amax, float largest) {
  return has_scale(amax) ? finite_quotient(largest, amax) : 1;
}

void DelayedScale::update(float amax, float largest, const DelayedScaling& options) {
  if (amax == 0) return;
  history.resize(static_cast<std::size_t>(options.history));
  std::rotate(history.rbegin(), history.rbegin() + 1, history.rend());
  history.front() = amax;
  const float chosen = chosen_magnitude(history, options.amax);
  if (has_scale(chosen)) scale = finite_quotient(std::ldexp(largest, -options.margin), chosen);
}

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
