// Forward and backward of pooling over any windows.
#include <memory>

#include "sim/layers/layers.hpp"

namespace halfscope {
namespace {

ImageShape images_of(const std::string& name, const Shape& shape) {
  if (shape.size() == 4) return {shape[0], shape[1], shape[2], shape[3]};
  throw InvalidArgument("layer " + name + ": input " + to_string(shape) + " is no batch of images");
}

/// Throws InvalidArgument where the windows do not fit.
Shape output_shape(const std::string& name, const ImageShape& images, const PoolWindow& window) {
  const ImageShape pooled = checked_pooled_shape("layer " + name, images, window);
  return {pooled.batch, pooled.height, pooled.width, pooled.channels};
}

bool is_2x2(const ImageShape& images, const PoolWindow& window) {
  return window.size == 2 && window.stride == 2 && window.padding == 0 && images.height % 2 == 0 &&
         images.width % 2 == 0;
}

}  // namespace

TensorRef max_pool(Tape& tape, const std::string& name, TensorRef x, const PoolWindow& window) {
  const Operation operation = tape.operation("max_pool2d", name, {&x});
  const ImageShape images = images_of(name, tape.value(x).shape());
  if (is_2x2(images, window)) return max_pool(tape, name, x);
  Array y(output_shape(name, images, window), tape.value(x).dtype());
  auto winner = std::make_shared<Memory<std::uint8_t>>(y.size());
  max_pool(tape.value(x).view(), images, window, y.view(), winner->values());
  const auto backward = [x, images, window, winner](BackwardScope& scope, Array gradient) {
    Array x_gradient(scope.value(x).shape());
    max_pool_gradient(gradient.view(), images, window, winner->values(), x_gradient.values());
    scope.add_gradient(x, std::move(x_gradient));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::no, .backward = backward});
}

TensorRef average_pool(Tape& tape, const std::string& name, TensorRef x, const PoolWindow& window,
                       AverageOver over) {
  const Operation operation = tape.operation("avg_pool2d", name, {&x});
  const ImageShape images = images_of(name, tape.value(x).shape());
  Array y(output_shape(name, images, window));
  average_pool(tape.value(x).view(), images, window, over, y.values());
  const auto backward = [x, images, window, over](BackwardScope& scope, Array gradient) {
    Array x_gradient(scope.value(x).shape());
    average_pool_gradient(gradient.view(), images, window, over, x_gradient.values());
    scope.add_gradient(x, std::move(x_gradient));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
