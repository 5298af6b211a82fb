// Forward and backward of concatenation: copies.
#include "sim/layers/layers.hpp"

#include "lib/nn/strided_elementwise.hpp"

namespace halfscope {
namespace {

Shape leading_axes(Shape shape) {
  if (!shape.empty()) shape.pop_back();
  return shape;
}

}  // namespace

TensorRef concat_channels(Tape& tape, const std::string& name, TensorRef a, TensorRef b) {
  const Shape &first = tape.value(a).shape(), &second = tape.value(b).shape();
  if (first.empty() || second.empty() || leading_axes(first) != leading_axes(second)) {
    throw InvalidArgument("layer " + name + ": " + to_string(first) + " and " + to_string(second) +
                          " differ in more than their channels");
  }
  Shape shape = first;
  shape.back() += second.back();
  const std::int64_t rows = static_cast<std::int64_t>(element_count(leading_axes(shape)));
  const std::int64_t left = first.back(), right = second.back(), row = shape.back();
  Array y(std::move(shape), tape.value(a).dtype());
  copy_columns({rows, left}, {tape.value(a).view(), 0, left}, {y.view(), 0, row});
  copy_columns({rows, right}, {tape.value(b).view(), 0, right}, {y.view(), left, row});

  const auto backward = [a, b, rows, row, left](Tape& t, Array gradient) {
    const auto part = [&](TensorRef input, std::int64_t at) {
      if (!t.needs_gradient(input)) return;
      Array piece(t.value(input).shape(), gradient.dtype());
      const std::int64_t columns = piece.shape().back();
      copy_columns({rows, columns}, {gradient.view(), at, row}, {piece.view(), 0, columns});
      t.add_gradient(input, std::move(piece), Rounds::no);
    };
    part(a, 0);
    part(b, left);
  };
  return tape.record({.name = name, .value = std::move(y), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
