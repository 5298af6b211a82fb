// Dropout's factors on the device, one thread per random block.
#include <halfscope/kernel/detail/launch.cuh>

#include "lib/nn/dropout.hpp"

namespace halfscope::cuda {

void dropout_factors(const RandomStream& stream, float probability, std::span<float> factors) {
  (void)on_device(factors);
  const DropoutBlock draw = dropout_block(stream, probability, factors);
  for_each((draw.count + 3) / 4, draw, "dropout_factors");
}

}  // namespace halfscope::cuda
