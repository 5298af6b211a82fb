// Forward and backward of concatenation: copies.
#include <array>

#include "lib/nn/strided_elementwise.hpp"
#include "sim/layers/layers.hpp"

namespace halfscope {
namespace {

Shape leading_axes(Shape shape) {
  if (!shape.empty()) shape.pop_back();
  return shape;
}

/// Throws InvalidArgument unless the shapes agree in all axes but the last.
void check_beside(const std::string& name, const Shape& first, const Shape& next) {
  if (!first.empty() && !next.empty() && leading_axes(first) == leading_axes(next)) return;
  throw InvalidArgument("layer " + name + ": " + to_string(first) + " and " + to_string(next) +
                        " differ in more than their channels");
}

/// Where the columns of a part lie among those of all.
struct Slice {
  TensorRef part;
  std::int64_t first, count;
};

}  // namespace

TensorRef concat_channels(Tape& tape, const std::string& name, std::span<const TensorRef> parts) {
  if (parts.empty()) throw InvalidArgument("layer " + name + ": give at least one tensor");
  std::vector<TensorRef> inputs(parts.begin(), parts.end());
  const Operation operation = tape.operation("cat", name, inputs);
  Shape shape = tape.value(inputs.front()).shape();
  std::vector<Slice> slices;
  std::int64_t row = 0;
  for (const TensorRef part : inputs) {
    const Shape& next = tape.value(part).shape();
    check_beside(name, shape, next);
    slices.push_back({part, row, next.back()});
    row += next.back();
  }
  shape.back() = row;
  const auto rows = static_cast<std::int64_t>(element_count(leading_axes(shape)));
  Array y(std::move(shape), tape.value(inputs.front()).dtype());
  for (const Slice& of : slices)
    copy_columns({rows, of.count}, {tape.value(of.part).view(), 0, of.count}, {y.view(), of.first, row});

  const auto backward = [slices, rows, row](BackwardScope& scope, Array gradient) {
    for (const Slice& of : slices) {
      if (!scope.needs_gradient(of.part)) continue;
      Array piece(scope.value(of.part).shape(), gradient.dtype());
      copy_columns({rows, of.count}, {gradient.view(), of.first, row}, {piece.view(), 0, of.count});
      scope.add_gradient(of.part, std::move(piece), Rounds::no);
    }
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::no, .backward = backward});
}

TensorRef concat_channels(Tape& tape, const std::string& name, TensorRef a, TensorRef b) {
  return concat_channels(tape, name, std::array{a, b});
}

}  // namespace halfscope
