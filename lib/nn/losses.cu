// Element-wise losses on the device, one thread per element.
#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/kernel/detail/launch.cuh>

#include "lib/nn/losses.hpp"
#include "lib/nn/losses_element.hpp"

namespace halfscope::cuda {
namespace {

std::int64_t count_of(std::span<const float> values) {
  return static_cast<std::int64_t>(values.size());
}

struct SigmoidLoss {
  const float* x;
  const float* targets;
  float* losses;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const float term =
        elementary<Elementary::log>(elementary<Elementary::exp>(negative_magnitude(x[i])) + 1.0f);
    losses[i] = term + sigmoid_loss_without_log(x[i], targets[i]);
  }
};

struct SigmoidLossGradient {
  const float* x;
  const float* targets;
  DeviceRatio factor;
  float* x_gradient;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    x_gradient[i] = (elementary<Elementary::sigmoid>(x[i]) - targets[i]) * factor.value();
  }
};

struct ProbabilityLoss {
  const float* p;
  const float* targets;
  float* losses;
  HALFSCOPE_HD void operator()(std::int64_t i) const { losses[i] = probability_loss(p[i], targets[i]); }
};

struct ProbabilityLossGradient {
  const float* p;
  const float* targets;
  DeviceRatio factor;
  float* p_gradient;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    p_gradient[i] = probability_slope(p[i], targets[i]) * factor.value();
  }
};

/// Element i of the targets and its place in x.
struct Targets {
  const std::int64_t* rows;
  const float* values;
  std::int64_t columns;
  HALFSCOPE_HD std::int64_t place(std::int64_t i) const { return rows[i / columns] * columns + i % columns; }
};

Targets targets_of(const TargetRows& targets) {
  const auto rows = static_cast<std::int64_t>(targets.rows.size());
  return {on_device(targets.rows), on_device(targets.values),
          rows == 0 ? 1 : count_of(targets.values) / rows};
}

struct SmoothL1Loss {
  const float* x;
  Targets targets;
  float* losses;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    losses[i] = smooth_l1_loss(x[targets.place(i)] - targets.values[i]);
  }
};

struct SmoothL1Gradient {
  const float* x;
  Targets targets;
  DeviceRatio factor;
  float* x_gradient;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int64_t at = targets.place(i);
    x_gradient[at] += smooth_l1_slope(x[at] - targets.values[i]) * factor.value();
  }
};

}  // namespace

void sigmoid_losses(std::span<const float> x, std::span<const float> targets, std::span<float> losses) {
  for_each(count_of(x), SigmoidLoss{on_device(x), on_device(targets), on_device(losses)}, "sigmoid_losses");
}

void sigmoid_losses_gradient(std::span<const float> x, std::span<const float> targets,
                             const DeviceRatio& factor, std::span<float> x_gradient) {
  (void)on_device(factor.numerator);
  for_each(count_of(x), SigmoidLossGradient{on_device(x), on_device(targets), factor, on_device(x_gradient)},
           "sigmoid_losses_gradient");
}

void probability_losses(std::span<const float> p, std::span<const float> targets, std::span<float> losses) {
  for_each(count_of(p), ProbabilityLoss{on_device(p), on_device(targets), on_device(losses)},
           "probability_losses");
}

void probability_losses_gradient(std::span<const float> p, std::span<const float> targets,
                                 const DeviceRatio& factor, std::span<float> p_gradient) {
  (void)on_device(factor.numerator);
  for_each(count_of(p),
           ProbabilityLossGradient{on_device(p), on_device(targets), factor, on_device(p_gradient)},
           "probability_losses_gradient");
}

void smooth_l1_losses(std::span<const float> x, const TargetRows& targets, std::span<float> losses) {
  for_each(count_of(targets.values), SmoothL1Loss{on_device(x), targets_of(targets), on_device(losses)},
           "smooth_l1_losses");
}

void smooth_l1_losses_gradient(std::span<const float> x, const TargetRows& targets, const DeviceRatio& factor,
                               std::span<float> x_gradient) {
  (void)on_device(factor.numerator);
  for_each(count_of(targets.values),
           SmoothL1Gradient{on_device(x), targets_of(targets), factor, on_device(x_gradient)},
           "smooth_l1_losses_gradient");
}

}  // namespace halfscope::cuda
