// Forward and backward of rotary positions: pairs of channels turn by angles that grow with the position.
#include <cmath>
#include <memory>

#include "lib/nn/strided_elementwise.hpp"
#include "sim/layers/attention.hpp"

namespace halfscope {
namespace {

/// (time, channels / 2) each, on the active device.
struct Turns {
  Array cosines, sines;
};

/// Pair i at position t turns by t * base^(-2 i / channels).
Turns turns_of(std::int64_t time, std::int64_t channels, double base) {
  const std::int64_t pairs = channels / 2;
  Array cosines({time, pairs}, Device::cpu), sines({time, pairs}, Device::cpu);
  for (std::int64_t t = 0; t < time; ++t) {
    for (std::int64_t i = 0; i < pairs; ++i) {
      const double turn = static_cast<double>(t) *
                          std::pow(base, -2 * static_cast<double>(i) / static_cast<double>(channels));
      const auto at = static_cast<std::size_t>(t * pairs + i);
      cosines[at] = static_cast<float>(std::cos(turn));
      sines[at] = static_cast<float>(std::sin(turn));
    }
  }
  return {cosines.to(active_device()), sines.to(active_device())};
}

enum class Direction : std::uint8_t { on, back };

/// (first, second) = (x1 cos - x2 sin, x2 cos + x1 sin) of the halves of each row; back, with -sin. Each
/// product and sum is rounded to FP32.
Array rotated(const Array& x, const Turns& turns, Direction direction) {
  const std::int64_t time = turns.cosines.extent(0), pairs = turns.cosines.extent(1), row = 2 * pairs;
  const ColumnExtents extents{
      .rows = time, .columns = pairs, .batch = static_cast<std::int64_t>(x.size()) / (time * row)};
  const ConstColumns first{x.view(), 0, row, time * row}, second{x.view(), pairs, row, time * row},
      cosines{turns.cosines.view(), 0, pairs, 0}, sines{turns.sines.view(), 0, pairs, 0};
  Array y(x.shape()), crossed(x.shape());
  const auto half = [&](Array& array, std::int64_t from) {
    return Columns{array.view(), from, row, time * row};
  };
  combine(Combination::product, extents, first, cosines, half(y, 0));
  combine(Combination::product, extents, second, cosines, half(y, pairs));
  combine(Combination::product, extents, second, sines, half(crossed, 0));
  combine(Combination::product, extents, first, sines, half(crossed, pairs));
  const bool on = direction == Direction::on;
  combine(on ? Combination::difference : Combination::sum, extents, half(y, 0), half(crossed, 0), half(y, 0));
  combine(on ? Combination::sum : Combination::difference, extents, half(y, pairs), half(crossed, pairs),
          half(y, pairs));
  return y;
}

}  // namespace

TensorRef rotary(Tape& tape, const std::string& name, TensorRef x, float base) {
  const Operation operation = tape.operation("mul", name, {&x});
  const Shape& shape = tape.value(x).shape();
  if (shape.size() < 2 || shape.back() % 2 != 0 || tape.value(x).empty()) {
    throw InvalidArgument("layer " + name + ": input " + to_string(shape) +
                          " is no (..., time, channels) of an even number of channels");
  }
  const auto turns = std::make_shared<const Turns>(
      turns_of(shape[shape.size() - 2], shape.back(), static_cast<double>(base)));
  Array y = rotated(tape.value(x), *turns, Direction::on);
  const auto backward = [x, turns](BackwardScope& scope, Array gradient) {
    scope.add_gradient(x, rotated(gradient, *turns, Direction::back));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
