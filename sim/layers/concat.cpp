// Forward and backward of concatenation: copies.
#include "sim/layers/concat.hpp"

#include <cstring>

#include <halfscope/core/parallel.hpp>

namespace halfscope {
namespace {

/// Positions of one task.
constexpr std::int64_t grain = 512;

/// Some columns of a row-major matrix.
struct Columns {
  std::int64_t first, count, stride;
};

/// Copies (rows, from.count) from one matrix to another.
void copy_columns(const float* source, const Columns& from, float* target, const Columns& to,
                  std::int64_t rows) {
  parallel_for_ranges(rows, grain, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t r = first; r < first + count; ++r) {
      std::memcpy(target + r * to.stride + to.first, source + r * from.stride + from.first,
                  static_cast<std::size_t>(from.count) * sizeof(float));
    }
  });
}

Shape leading_axes(Shape shape) {
  if (!shape.empty()) shape.pop_back();
  return shape;
}

}  // namespace

TensorRef concat_channels(Tape& tape, const std::string& name, TensorRef a, TensorRef b) {
  const Shape &first = tape.value(a).shape(), &second = tape.value(b).shape();
  if (first.empty() || second.empty() || leading_axes(first) != leading_axes(second)) {
    throw RequestError("layer " + name + ": " + to_string(first) + " and " + to_string(second) +
                       " differ in more than their channels");
  }
  Shape shape = first;
  shape.back() += second.back();
  const std::int64_t rows = static_cast<std::int64_t>(element_count(leading_axes(shape)));
  const Columns left{0, first.back(), shape.back()}, right{first.back(), second.back(), shape.back()};
  Array y(std::move(shape));
  copy_columns(tape.value(a).data(), {0, left.count, left.count}, y.data(), left, rows);
  copy_columns(tape.value(b).data(), {0, right.count, right.count}, y.data(), right, rows);

  const auto backward = [a, b, left, right, rows](Tape& t, Array gradient) {
    const auto part = [&](TensorRef input, const Columns& columns) {
      if (!t.needs_gradient(input)) return;
      Array piece(t.value(input).shape());
      copy_columns(gradient.data(), columns, piece.data(), {0, columns.count, columns.count}, rows);
      t.add_gradient(input, std::move(piece), Rounds::no);
    };
    part(a, left);
    part(b, right);
  };
  return tape.record({.name = name, .value = std::move(y), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
