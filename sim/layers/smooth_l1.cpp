// Forward and backward of smooth L1; few rows have a target, so the loops are plain.
#include "sim/layers/smooth_l1.hpp"

#include <fmt/format.h>

#include <cmath>

namespace halfscope {
namespace {

float smooth(float difference) {
  const float size = std::fabs(difference);
  return size < 1.0f ? 0.5f * size * size : size - 0.5f;
}

/// The derivative of `smooth`. A NaN stays one.
float slope(float difference) {
  return difference > 1.0f ? 1.0f : difference < -1.0f ? -1.0f : difference;
}

void check(const std::string& name, const Array& x, const RowTargets& targets) {
  const auto count = static_cast<std::int64_t>(targets.rows.size());
  if (x.shape().size() != 2 || (count > 0 && targets.values.shape() != Shape{count, x.extent(1)})) {
    throw RequestError(fmt::format("layer {}: {} targets of shape {} do not fit input {}", name, count,
                                   to_string(targets.values.shape()), to_string(x.shape())));
  }
  for (const std::int64_t row : targets.rows) {
    if (row >= 0 && row < x.extent(0)) continue;
    throw RequestError(
        fmt::format("layer {}: a target for row {}, the input has 0 to {}", name, row, x.extent(0) - 1));
  }
  if (!(targets.denominator > 0)) {
    throw RequestError(fmt::format("layer {}: denominator {}; give one above 0", name, targets.denominator));
  }
}

/// Calls visit(index into the targets, index into x) for each element that has a target.
template <typename Visit>
void for_targets(const RowTargets& targets, std::int64_t columns, Visit&& visit) {
  std::size_t i = 0;
  for (const std::int64_t row : targets.rows) {
    for (std::int64_t c = 0; c < columns; ++c) visit(i++, static_cast<std::size_t>(row * columns + c));
  }
}

}  // namespace

TensorRef smooth_l1(Tape& tape, const std::string& name, TensorRef x, RowTargets targets) {
  const Array& input = tape.value(x);
  check(name, input, targets);
  auto kept = std::make_shared<const RowTargets>(std::move(targets));
  const std::int64_t columns = input.extent(1);
  Array terms({static_cast<std::int64_t>(kept->rows.size()) * columns});
  for_targets(*kept, columns,
              [&](std::size_t i, std::size_t at) { terms[i] = smooth(input[at] - kept->values[i]); });
  const float loss = accumulate(terms.values(), ScopedAccumulate{}.model) / kept->denominator;

  const auto backward = [x, columns, kept](Tape& t, Array gradient) {
    Array x_gradient = Array::zeros(t.value(x).shape());
    const float factor = gradient[0] / kept->denominator;
    for_targets(*kept, columns, [&](std::size_t i, std::size_t at) {
      x_gradient[at] += slope(t.value(x)[at] - kept->values[i]) * factor;
    });
    t.add_gradient(x, std::move(x_gradient));
  };
  return tape.record(
      {.name = name, .value = Array::from({}, {loss}), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
