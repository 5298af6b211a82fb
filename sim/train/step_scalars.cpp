// Measures at once on the CPU, and through the caster's read-back on the device.
#include "sim/train/step_scalars.hpp"

#include <cmath>
#include <deque>

#include <halfscope/format/bits.hpp>
#include <halfscope/kernel/cast/convert.hpp>
#include <halfscope/kernel/reduce/sum_of_squares.hpp>

#include "lib/nn/elementwise.hpp"

namespace halfscope {
namespace {

float largest_gradient(const ParameterStore& store) {
  float largest = 0;  // of bits, so that a NaN is the largest
  for (const Parameter& parameter : store.parameters) {
    const float here = largest_magnitude(parameter.gradient.view());
    if (magnitude_bits(here) > magnitude_bits(largest)) largest = here;
  }
  return largest;
}

/// The squares of each parameter are added up by themselves, as where they are read one by one.
double norm_of(std::span<const double> sums) {
  double all = 0;
  for (std::size_t first = 0; first < sums.size(); first += sum_of_squares_lanes) {
    double parameter = 0;
    for (const double lane : sums.subspan(first, sum_of_squares_lanes)) parameter += lane;
    all += parameter;
  }
  return std::sqrt(all);
}

QueuedNumbers queue_on_device(Readback& readback, const Array& loss, const ParameterStore& store,
                              const GradientMeasure& measure) {
  const QueuedNumbers queued{.loss = readback.take<float>(1),
                             .largest = readback.take<std::uint32_t>(1),
                             .squares = readback.take<double>(
                                 measure.norm_after ? sum_of_squares_lanes * store.parameters.size() : 0)};
  copy_values(loss.values(), readback.device_values(queued.loss));
  if (measure.largest) {
    for (const Parameter& parameter : store.parameters)
      cuda::queue_largest_magnitude(parameter.gradient.view(), readback.device_values(queued.largest));
  }
  if (measure.norm_after) {
    std::deque<FloatsOf> floats;
    std::vector<std::span<const float>> gradients;
    for (const Parameter& parameter : store.parameters)
      gradients.push_back(floats.emplace_back(parameter.gradient).values());
    cuda::queue_sums_of_squares(gradients, *measure.norm_after, readback.device_values(queued.squares));
  }
  return queued;
}

}  // namespace

QueuedNumbers queue_numbers(Caster& caster, const Array& loss, const ParameterStore& store,
                            const GradientMeasure& measure) {
  if (active_device() == Device::cuda) return queue_on_device(caster.readback(), loss, store, measure);
  return {.known = {.loss = loss.item(), .largest = measure.largest ? largest_gradient(store) : 0.0f}};
}

StepScalars collect_numbers(Caster& caster, const QueuedNumbers& queued) {
  caster.collect();
  if (active_device() == Device::cpu) return queued.known;
  const Readback& readback = caster.readback();
  return {.loss = readback.values(queued.loss)[0],
          .largest = from_bits(readback.values(queued.largest)[0]),
          .norm = norm_of(readback.values(queued.squares))};
}

}  // namespace halfscope
