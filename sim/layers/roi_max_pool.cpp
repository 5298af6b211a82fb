// Forward and backward of max pooling over regions.
#include <memory>

#include "sim/layers/layers.hpp"

namespace halfscope {

TensorRef roi_max_pool(Tape& tape, const std::string& name, TensorRef x, const Regions& regions) {
  const Operation operation = tape.operation("roi_pool", name, {&x});
  const Shape& shape = tape.value(x).shape();
  if (shape.size() != 4)
    throw InvalidArgument("layer " + name + ": input " + to_string(shape) + " is no batch of images");
  const auto index = std::make_shared<const RegionIndex>(
      regions.of_images, ImageShape{shape[0], shape[1], shape[2], shape[3]}, regions.size);
  Array y({index->count(), regions.size, regions.size, shape[3]}, tape.value(x).dtype());
  auto winner = std::make_shared<Memory<std::int32_t>>(y.size());
  roi_max_pool(tape.value(x).view(), *index, y.view(), winner->values());
  const auto backward = [x, index, winner](BackwardScope& scope, Array gradient) {
    Array x_gradient(scope.value(x).shape());
    roi_max_pool_gradient(gradient.view(), *index, winner->values(), x_gradient.values());
    scope.add_gradient(x, std::move(x_gradient));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
