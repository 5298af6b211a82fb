// Scales from largest magnitudes, in FP32 as TransformerEngine computes them.
#include <halfscope/policy/operand_scale.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

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

}  // namespace halfscope
