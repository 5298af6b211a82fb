// Adds in FP32 and rounds.
#include "sim/train/gradient_sum.hpp"

#include <utility>

#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/cast/round.hpp>

#include "lib/nn/elementwise.hpp"

namespace halfscope {

void GradientSum::add(ParameterStore& store) {
  const bool first = sums_.empty();
  for (std::size_t i = 0; i < store.parameters.size(); ++i) {
    Array gradient = to_dtype(std::move(store.parameters[i].gradient), DType::f32);
    if (!first) halfscope::add(gradient.view(), sums_[i].values());
    if (first) sums_.push_back(std::move(gradient));
    if (!format_.is_identity()) round(sums_[i].values(), sums_[i].values(), format_);
  }
}

void GradientSum::finish(ParameterStore& store) {
  for (std::size_t i = 0; i < store.parameters.size(); ++i)
    store.parameters[i].gradient = std::move(sums_.at(i));
  sums_.clear();
}

}  // namespace halfscope
