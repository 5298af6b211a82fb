// Forward and backward of global average pooling.
#include "sim/layers/layers.hpp"

#include <halfscope/kernel/reduce/reduce.hpp>

#include "lib/nn/elementwise.hpp"
#include "lib/nn/strided_elementwise.hpp"

namespace halfscope {
namespace {

/// (batch, channels): the sums over the positions of each image.
Array position_sums(const CastScope& casts, const std::string& name, const Array& x) {
  const std::int64_t positions = x.extent(1) * x.extent(2), channels = x.extent(3);
  Array sums({x.extent(0), channels});
  const ColumnTerms terms{
      .x = ElementReader(x.view()), .rows = positions, .columns = channels, .matrices = x.extent(0)};
  casts.sum_columns(name + ".mean", terms, casts.policy().reductions_in(name), sums.values());
  return sums;
}

}  // namespace

TensorRef global_average_pool(Tape& tape, const std::string& name, TensorRef x) {
  const Operation operation = tape.operation("adaptive_avg_pool2d", name, {&x});
  const Array& input = tape.value(x);
  if (input.shape().size() != 4 || input.empty()) {
    throw InvalidArgument("layer " + name + ": input " + to_string(input.shape()) + " is no batch of images");
  }
  const std::int64_t positions = input.extent(1) * input.extent(2);
  const float share = 1.0f / static_cast<float>(positions);
  Array y = position_sums(operation.casts(), name, input);
  scale(y.values(), share, y.values());

  const auto backward = [x, positions, share](BackwardScope& scope, Array gradient) {
    Array shares(gradient.shape());
    scale(gradient.view(), share, shares.values());
    Array x_gradient(scope.value(x).shape());
    const std::int64_t images = gradient.extent(0), channels = gradient.extent(1);
    copy_columns({positions, channels, images},
                 {.values = shares.view(), .matrix = channels},  // one row for all positions
                 {.values = x_gradient.view(), .row = channels, .matrix = positions * channels});
    scope.add_gradient(x, std::move(x_gradient));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
