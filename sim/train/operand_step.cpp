// The largest magnitudes of all processes.
#include "sim/train/operand_step.hpp"

#include <algorithm>
#include <cstring>

#include "sim/train/processes.hpp"

namespace halfscope {
namespace {

/// Raises each of `maxima` to the largest of all processes at its place.
void raise_to_all(std::vector<float>& maxima) {
  const std::size_t bytes = maxima.size() * sizeof(float);
  std::vector<float> others(maxima.size());
  for (const std::string& process :
       gather(std::string(reinterpret_cast<const char*>(maxima.data()), bytes))) {
    std::memcpy(others.data(), process.data(), std::min(bytes, process.size()));
    for (std::size_t i = 0; i < maxima.size(); ++i) maxima[i] = std::max(maxima[i], others[i]);
  }
}

}  // namespace

void end_step(OperandScales& scales, OperandMaxima& step) {
  if (step.empty()) return;
  std::vector<float> maxima;
  for (const auto& [operand, seen] : step) maxima.push_back(seen.amax);
  raise_to_all(maxima);
  std::size_t next = 0;
  for (auto& [operand, seen] : step) seen.amax = maxima[next++];
  scales.update(step);
  step.clear();
}

}  // namespace halfscope
