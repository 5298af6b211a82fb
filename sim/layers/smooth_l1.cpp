// Forward and backward of smooth L1.
#include "sim/layers/losses.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <halfscope/kernel/reduce/reduce.hpp>

#include "lib/nn/losses.hpp"

namespace halfscope {
namespace {

void check(const std::string& name, const Array& x, const RowTargets& targets) {
  const auto count = static_cast<std::int64_t>(targets.rows.size());
  if (x.shape().size() != 2 || (count > 0 && targets.values.shape() != Shape{count, x.extent(1)})) {
    throw InvalidArgument(fmt::format("layer {}: {} targets of shape {} do not fit input {}", name, count,
                                      to_string(targets.values.shape()), to_string(x.shape())));
  }
  for (const std::int64_t row : targets.rows) {
    if (row >= 0 && row < x.extent(0)) continue;
    throw InvalidArgument(
        fmt::format("layer {}: a target for row {}, the input has 0 to {}", name, row, x.extent(0) - 1));
  }
  std::vector<std::int64_t> rows = targets.rows;
  std::sort(rows.begin(), rows.end());
  const auto twice = std::adjacent_find(rows.begin(), rows.end());
  if (twice != rows.end())
    throw InvalidArgument(fmt::format("layer {}: two targets for row {}; give one", name, *twice));
  if (!(targets.denominator > 0)) {
    throw InvalidArgument(
        fmt::format("layer {}: denominator {}; give one above 0", name, targets.denominator));
  }
}

/// The targets on the active device.
struct Kept {
  Memory<std::int64_t> rows;
  Array values;
  float denominator;

  [[nodiscard]] TargetRows targets() const { return {rows.values(), values.values()}; }
};

}  // namespace

TensorRef smooth_l1(Tape& tape, const std::string& name, TensorRef x, RowTargets targets) {
  const Operation operation = tape.operation("smooth_l1_loss", name, {&x});
  const Array& input = tape.value(x);
  check(name, input, targets);
  const auto kept = std::make_shared<const Kept>(
      Kept{Memory<std::int64_t>::from(targets.rows), std::move(targets.values), targets.denominator});
  Array losses({static_cast<std::int64_t>(kept->values.size())});
  smooth_l1_losses(FloatsOf(input).values(), kept->targets(), losses.values());
  Array loss(Shape{});
  divided_sum(losses.values(), kept->denominator, ScopedAccumulate{}.model, loss.values());

  const auto backward = [x, kept](BackwardScope& scope, Array gradient) {
    Array x_gradient = Array::zeros(scope.value(x).shape());
    smooth_l1_losses_gradient(scope.floats(x).values(), kept->targets(),
                              {gradient.values(), kept->denominator}, x_gradient.values());
    scope.add_gradient(x, std::move(x_gradient));
  };
  return operation.record({.value = std::move(loss), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
