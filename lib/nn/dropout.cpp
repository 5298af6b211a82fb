// Splits the random blocks over the threads.
#include <halfscope/core/parallel.hpp>

#include "lib/nn/dropout.hpp"

namespace halfscope {

void dropout_factors(const RandomStream& stream, float probability, std::span<float> factors) {
  if (active_device() == Device::cuda) return cuda::dropout_factors(stream, probability, factors);
  constexpr std::int64_t grain = 1024;  // blocks per task
  const DropoutBlock draw = dropout_block(stream, probability, factors);
  parallel_for_ranges((draw.count + 3) / 4, grain, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t block = first; block < first + count; ++block) draw(block);
  });
}

}  // namespace halfscope
