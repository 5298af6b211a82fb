// Compensated sums, element by element.
#include "sim/optim/compensated_sum.hpp"

#include <halfscope/core/parallel.hpp>
#include <halfscope/format/round.hpp>

namespace halfscope {

CompensatedWeight kahan_sum(const CompensatedWeight& w, float update, const Quantizer& format) {
  const float y = round(update + w.rest, format), sum = round(w.weight + y, format);
  return {sum, round(y - round(sum - w.weight, format), format)};
}

CompensatedWeight two_component_sum(const CompensatedWeight& w, float update, const Quantizer& format) {
  const float y = round(update, format), sum = round(w.weight + y, format);
  const float seen = round(sum - w.weight, format);
  const float error =
      round(round(w.weight - round(sum - seen, format), format) + round(y - seen, format), format);
  const float rest = round(w.rest + error, format), weight = round(sum + rest, format);
  return {weight, round(rest - round(weight - sum, format), format)};
}

CompensatedWeights::CompensatedWeights(ParameterStore& store, WeightSum sum, const Quantizer& format)
    : store_(&store), sum_(sum), format_(format) {
  if (sum == WeightSum::plain) return;
  for (const Parameter& parameter : store.parameters)
    rests_.push_back(Array::zeros(parameter.master.shape()));
}

void CompensatedWeights::begin() {
  for (std::size_t i = 0; i < rests_.size(); ++i) {
    const std::span<const float> weights = store_->parameters[i].master.values();
    const bool keeps = sum_ == WeightSum::two_components;
    for (std::size_t k = 0; k < weights.size(); ++k)
      rests_[i][k] = keeps ? round(weights[k] - round(weights[k], format_), format_) : 0;
  }
}

void CompensatedWeights::before_update(std::size_t index) {
  if (!empty()) before_ = store_->parameters[index].master.clone();
}

void CompensatedWeights::after_update(std::size_t index) {
  if (empty()) return;
  const auto add = sum_ == WeightSum::kahan ? kahan_sum : two_component_sum;
  float *weights = store_->parameters[index].master.data(), *rests = rests_[index].data();
  const float* before = before_.data();
  parallel_for_ranges(
      static_cast<std::int64_t>(before_.size()), 4096, [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t k = first; k < first + count; ++k) {
          const CompensatedWeight sum = add({before[k], rests[k]}, weights[k] - before[k], format_);
          weights[k] = sum.weight;
          rests[k] = sum.rest;
        }
      });
}

}  // namespace halfscope
