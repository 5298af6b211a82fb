// Forward and backward of nearest-neighbour upsampling.
#include "sim/layers/layers.hpp"

#include <fmt/format.h>

#include "lib/nn/upsample.hpp"

namespace halfscope {

TensorRef upsample_nearest(Tape& tape, const std::string& name, TensorRef x, std::int64_t factor) {
  const Operation operation = tape.operation("upsample_nearest", name, {&x});
  const Shape& shape = tape.value(x).shape();
  if (shape.size() != 4 || factor < 1) {
    throw InvalidArgument(
        fmt::format("layer {}: cannot enlarge {} by {}; give a batch of images and a factor of "
                    "1 or more",
                    name, to_string(shape), factor));
  }
  const ImageShape images{shape[0], shape[1], shape[2], shape[3]};
  Array y({shape[0], shape[1] * factor, shape[2] * factor, shape[3]}, tape.value(x).dtype());
  upsample(tape.value(x).view(), images, factor, y.view());
  const auto backward = [x, images, factor](BackwardScope& scope, Array gradient) {
    Array x_gradient(scope.value(x).shape());
    upsample_gradient(gradient.view(), images, factor, x_gradient.values());
    scope.add_gradient(x, std::move(x_gradient));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::no, .backward = backward});
}

}  // namespace halfscope
