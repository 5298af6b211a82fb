// Forward and backward of softmax as a layer of its own.
#include <fmt/format.h>

#include <memory>
#include <vector>

#include "lib/nn/elementwise.hpp"
#include "lib/nn/softmax.hpp"
#include "lib/nn/strided_elementwise.hpp"
#include "sim/layers/attention.hpp"
#include "sim/layers/rows.hpp"

namespace halfscope {

TensorRef masked_softmax(Tape& tape, const std::string& name, TensorRef x, const Array& mask) {
  const Operation operation = tape.operation("softmax", name, {&x});
  const Array& scores = tape.value(x);
  if (mask.shape() != scores.shape() || scores.shape().empty() || scores.empty()) {
    throw InvalidArgument(fmt::format("layer {}: a mask {} for scores {}; give one of their shape", name,
                                      to_string(mask.shape()), to_string(scores.shape())));
  }
  const std::int64_t columns = scores.shape().back();
  const std::int64_t rows = static_cast<std::int64_t>(scores.size()) / columns;
  Array masked = to_dtype(scores.clone(), DType::f32);
  add(mask.view(), masked.values());
  Array y(scores.shape()), unused({rows});
  softmax_cross_entropy(masked.values(), std::vector<std::int32_t>(static_cast<std::size_t>(rows)),
                        operation.policy().reductions_in(name), y.values(), unused.values());

  // The gradient is of the rounded y, which the next layer sees.
  const auto at = std::make_shared<TensorRef>();
  const auto backward = [x, at](BackwardScope& scope, Array gradient) {
    gradient = to_dtype(std::move(gradient), DType::f32);
    const Array probability = to_dtype(scope.value(*at).clone(), DType::f32);
    const Array sums = row_products(gradient, probability);
    subtract_from_rows(sums, gradient);
    combine(Combination::product, gradient.view(), probability.view(), gradient.values());
    scope.add_gradient(x, std::move(gradient));
  };
  *at = operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
  return *at;
}

}  // namespace halfscope
