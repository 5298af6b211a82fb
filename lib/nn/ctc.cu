// CTC on the device: a launch per frame, one thread per utterance and state.
#include <halfscope/kernel/detail/launch.cuh>

#include "lib/nn/ctc.hpp"
#include "lib/nn/ctc_element.hpp"

namespace halfscope::cuda {
namespace {

CtcArrays arrays_of(const CtcTargets& targets, const CtcPaths& paths) {
  return {targets.extents(),
          on_device(targets.frames()),
          on_device(targets.counts()),
          on_device(targets.state_labels()),
          on_device(paths.log_probability),
          on_device(paths.alpha)};
}

struct LogSoftmax {
  const float* logits;
  CtcArrays a;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    log_softmax(logits + i * a.extents.labels, a.extents.labels, a.log_probability + i * a.extents.labels);
  }
};

struct Alpha {
  CtcArrays a;
  std::int64_t t;
  Quantizer stored;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int64_t utterance = i / a.extents.states, state = i % a.extents.states;
    a.alpha[t * a.extents.batch * a.extents.states + i] = round(alpha_at(a, t, utterance, state), stored);
  }
};

struct Loss {
  CtcArrays a;
  float* losses;
  HALFSCOPE_HD void operator()(std::int64_t i) const { losses[i] = ctc_loss_of(a, i); }
};

/// A frame's betas, which are added to its alphas.
struct Beta {
  CtcArrays a;
  std::int64_t t;
  Quantizer stored;
  const float* after;
  float* beta;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int64_t utterance = i / a.extents.states, state = i % a.extents.states;
    const float value = round(beta_at(a, t, utterance, state, after), stored);
    beta[i] = value;
    a.alpha[t * a.extents.batch * a.extents.states + i] += value;
  }
};

struct Slope {
  CtcArrays a;
  DeviceRatio factor;
  const float* losses;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int64_t label = i % a.extents.labels, frame = i / a.extents.labels;
    const std::int64_t utterance = frame % a.extents.batch;
    a.log_probability[i] =
        ctc_slope(a, frame / a.extents.batch, utterance, label, losses[utterance]) * factor.value();
  }
};

}  // namespace

void ctc_losses(std::span<const float> logits, const CtcTargets& targets, const Quantizer& stored,
                const CtcPaths& paths, std::span<float> losses) {
  const CtcArrays a = arrays_of(targets, paths);
  const CtcExtents& e = a.extents;
  for_each(e.time * e.batch, LogSoftmax{on_device(logits), a}, "ctc_losses");
  for (std::int64_t t = 0; t < e.time; ++t) for_each(e.batch * e.states, Alpha{a, t, stored}, "ctc_losses");
  for_each(e.batch, Loss{a, on_device(losses)}, "ctc_losses");
}

void ctc_losses_gradient(const CtcTargets& targets, const Quantizer& stored, const DeviceRatio& factor,
                         std::span<const float> losses, const CtcPaths& paths) {
  (void)on_device(factor.numerator);
  const CtcArrays a = arrays_of(targets, paths);
  const CtcExtents& e = a.extents;
  const std::int64_t frame = e.batch * e.states;
  Memory<float> two(static_cast<std::size_t>(2 * frame));
  for (std::int64_t t = e.time - 1; t >= 0; --t) {
    for_each(frame, Beta{a, t, stored, two.data() + (t + 1) % 2 * frame, two.data() + t % 2 * frame},
             "ctc_losses_gradient");
  }
  for_each(e.time * e.batch * e.labels, Slope{a, factor, on_device(losses)}, "ctc_losses_gradient");
}

}  // namespace halfscope::cuda
