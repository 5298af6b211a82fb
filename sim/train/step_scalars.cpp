// Measures into memory of the active device, which is read back once.
#include "sim/train/step_scalars.hpp"

#include <halfscope/format/bits.hpp>

#include "lib/nn/elementwise.hpp"
#include "sim/optim/clip.hpp"

namespace halfscope {

QueuedScalars queue_scalars(Readback& readback, const Array& loss, const ParameterStore& store,
                            const GradientMeasure& measure) {
  const QueuedScalars queued{.loss = readback.take<float>(1),
                             .largest = readback.take<std::uint32_t>(1),
                             .squares = readback.take<double>(measure.norm_after ? square_sums(store) : 0)};
  copy_values(loss.values(), readback.device_values(queued.loss));
  if (measure.largest) {
    for (const Parameter& parameter : store.parameters)
      raise_to_largest(parameter.gradient.view(), readback.device_values(queued.largest));
  }
  if (measure.norm_after)
    sum_gradient_squares(store, *measure.norm_after, readback.device_values(queued.squares));
  return queued;
}

StepScalars collect_scalars(EventQueue& events, const QueuedScalars& queued) {
  events.collect();
  const Readback& readback = events.readback();
  return {.loss = with_one_nan(readback.values(queued.loss)[0]),  // text shows the sign of a NaN
          .largest = from_bits(readback.values(queued.largest)[0]),
          .norm = gradient_norm(readback.values(queued.squares))};
}

}  // namespace halfscope
