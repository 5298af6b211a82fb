// Scalars of a step that decide how it goes on: its loss, and magnitudes of its gradients.
#pragma once

#include "sim/tape/event_queue.hpp"
#include "sim/tape/parameter.hpp"

namespace halfscope {

/// Measures of the gradients that the backward pass has left.
struct GradientMeasure {
  bool largest = false;
  std::optional<float> norm_after{};  ///< a factor: the norm of the gradients times that is wanted
};

struct StepScalars {
  float loss = 0;
  float largest = 0;  ///< magnitude of any gradient; where any is infinite or NaN it is one of those
  double norm = 0;    ///< where it is wanted
};

/// Where the scalars are until they are read.
struct QueuedScalars {
  ReadbackSlot<float> loss{};
  ReadbackSlot<std::uint32_t> largest{};
  ReadbackSlot<double> squares{};
};

/// Measures; on the device nothing is waited for.
[[nodiscard]] QueuedScalars queue_scalars(Readback& readback, const Array& loss, const ParameterStore& store,
                                          const GradientMeasure& measure);
/// Notifies the trackers of all events so far and reads the scalars: on the device all with one wait.
[[nodiscard]] StepScalars collect_scalars(EventQueue& events, const QueuedScalars& queued);

}  // namespace halfscope
