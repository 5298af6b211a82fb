// What a step has to know of its loss and gradients before it can go on.
#pragma once

#include "sim/cast.hpp"
#include "sim/parameter.hpp"

namespace halfscope {

/// Of the gradients as the backward pass has left them.
struct GradientMeasure {
  bool largest = false;
  std::optional<float> norm_after{};  ///< a factor: the norm of the gradients times that is wanted
};

struct StepNumbers {
  float loss = 0;
  float largest = 0;  ///< magnitude of any gradient; where any is infinite or NaN it is one of those
  double norm = 0;    ///< as `gradient_norm`; on the CPU 0, which finds it where it clips
};

/// Measures and tells the trackers what has happened so far: on the device all of it with one wait.
[[nodiscard]] StepNumbers read_numbers(Caster& caster, const Array& loss, const ParameterStore& store,
                                       const GradientMeasure& measure);

}  // namespace halfscope
