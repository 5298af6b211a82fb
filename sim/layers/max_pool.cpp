// Forward and backward of max pooling.
#include "sim/layers/layers.hpp"

#include "lib/nn/max_pool.hpp"

namespace halfscope {

TensorRef max_pool(Tape& tape, const std::string& name, TensorRef x) {
  const Operation operation = tape.operation("max_pool2d", name, {&x});
  const Shape& shape = tape.value(x).shape();
  if (shape.size() != 4)
    throw InvalidArgument("layer " + name + ": input " + to_string(shape) + " is no batch of images");
  const ImageShape images{shape[0], shape[1], shape[2], shape[3]};
  Array y({shape[0], shape[1] / 2, shape[2] / 2, shape[3]}, tape.value(x).dtype());
  auto winner = std::make_shared<Memory<std::uint8_t>>(y.size());
  max_pool_2x2(tape.value(x).view(), images, y.view(), winner->values());
  const auto backward = [x, images, winner](BackwardScope& scope, Array gradient) {
    Array x_gradient(scope.value(x).shape(), gradient.dtype());
    max_pool_2x2_gradient(gradient.view(), images, winner->values(), x_gradient.view());
    scope.add_gradient(x, std::move(x_gradient), Rounds::no);
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
