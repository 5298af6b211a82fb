// Forward and backward of taking some rows: copies.
#include <fmt/format.h>

#include <memory>

#include "lib/nn/embedding.hpp"
#include "sim/layers/layers.hpp"

namespace halfscope {

TensorRef take_rows(Tape& tape, const std::string& name, TensorRef x, const TakenRows& taken) {
  const Operation operation = tape.operation("index_select", name, {&x});
  const Array& input = tape.value(x);
  const auto size = static_cast<std::int64_t>(input.size());
  if (taken.columns < 1 || size % taken.columns != 0) {
    throw InvalidArgument(fmt::format("layer {}: input {} has no rows of {} numbers", name,
                                      to_string(input.shape()), taken.columns));
  }
  const auto index = std::make_shared<const RowIndex>(taken.rows, size / taken.columns, taken.absent);
  const Shape shape = taken.shape.empty() ? Shape{index->positions(), taken.columns} : taken.shape;
  if (static_cast<std::int64_t>(element_count(shape)) != index->positions() * taken.columns) {
    throw InvalidArgument(fmt::format("layer {}: {} rows of {} numbers do not fit {}", name,
                                      index->positions(), taken.columns, to_string(shape)));
  }
  Array y(shape, input.dtype());
  gather_rows(input.view(), *index, y.view());
  const auto backward = [x, index](BackwardScope& scope, Array gradient) {
    Array sums(scope.value(x).shape());
    sum_rows(gradient.view(), *index, sums.values());
    scope.add_gradient(x, std::move(sums));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
