// The arithmetic of one frame, state or logit of CTC, for the loops on the CPU and on the device.
#pragma once

#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/format/bits.hpp>
#include <halfscope/format/round.hpp>

#include "lib/nn/ctc.hpp"

namespace halfscope {

/// Pointers and extents that all of CTC's loops share.
struct CtcArrays {
  CtcExtents extents;
  const std::int32_t* frames;        // (batch)
  const std::int32_t* counts;        // (batch)
  const std::int32_t* state_labels;  // (batch, states)
  float* log_probability;            // (time, batch, labels)
  float* alpha;                      // (time, batch, states)

  [[nodiscard]] HALFSCOPE_HD std::int64_t frame(std::int64_t t, std::int64_t utterance) const {
    return t * extents.batch + utterance;
  }
  [[nodiscard]] HALFSCOPE_HD float emitted(std::int64_t t, std::int64_t utterance, std::int32_t label) const {
    return log_probability[frame(t, utterance) * extents.labels + label];
  }
  [[nodiscard]] HALFSCOPE_HD const std::int32_t* labels_of(std::int64_t utterance) const {
    return state_labels + utterance * extents.states;
  }
  [[nodiscard]] HALFSCOPE_HD std::int64_t states_of(std::int64_t utterance) const {
    return 2 * std::int64_t{counts[utterance]} + 1;
  }
  /// Whether a path may come to `state` from two before: past a blank, between different labels.
  [[nodiscard]] HALFSCOPE_HD bool skips_to(std::int64_t utterance, std::int64_t state) const {
    const std::int32_t* const labels = labels_of(utterance);
    return state >= 2 && labels[state] != ctc_blank && labels[state] != labels[state - 2];
  }
};

[[nodiscard]] HALFSCOPE_HD float log_of_zero() {
  return -from_bits(infinity_bits);
}

/// log(e^a + e^b + e^c). The sum of three zeros is one; a NaN stays one.
[[nodiscard]] HALFSCOPE_HD float log_sum(float a, float b, float c) {
  float largest = a;
  if (largest < b) largest = b;
  if (largest < c) largest = c;
  if (largest == log_of_zero()) return a + b + c;
  return largest + log(exp(a - largest) + exp(b - largest) + exp(c - largest));
}

/// One frame's log softmax, whose sum is in ascending order.
HALFSCOPE_HD void log_softmax(const float* x, std::int64_t labels, float* y) {
  float largest = x[0];
  for (std::int64_t k = 1; k < labels; ++k) largest = largest < x[k] ? x[k] : largest;
  float sum = 0;
  for (std::int64_t k = 0; k < labels; ++k) sum += exp(x[k] - largest);
  const float log_of_sum = log(sum);
  for (std::int64_t k = 0; k < labels; ++k) y[k] = (x[k] - largest) - log_of_sum;
}

/// alpha of a frame's state, from those of the frame before; of a state behind the utterance's last, 0.
[[nodiscard]] HALFSCOPE_HD float alpha_at(const CtcArrays& a, std::int64_t t, std::int64_t utterance,
                                          std::int64_t state) {
  if (state >= a.states_of(utterance)) return log_of_zero();
  const float here = a.emitted(t, utterance, a.labels_of(utterance)[state]);
  if (t == 0) return state < 2 ? here : log_of_zero();
  const float* const before = a.alpha + a.frame(t - 1, utterance) * a.extents.states;
  const float from_left = state >= 1 ? before[state - 1] : log_of_zero();
  const float from_skip = a.skips_to(utterance, state) ? before[state - 2] : log_of_zero();
  return here + log_sum(before[state], from_left, from_skip);
}

/// beta of a frame's state: of all that follows it, from those of the frame behind, `after` (batch, states).
[[nodiscard]] HALFSCOPE_HD float beta_at(const CtcArrays& a, std::int64_t t, std::int64_t utterance,
                                         std::int64_t state, const float* after) {
  const std::int64_t states = a.states_of(utterance), frames = a.frames[utterance];
  if (state >= states || t >= frames) return log_of_zero();
  if (t == frames - 1) return state + 2 >= states ? 0.0f : log_of_zero();
  const std::int32_t* const labels = a.labels_of(utterance);
  const float* const behind = after + utterance * a.extents.states;
  const auto path = [&](std::int64_t to, bool allowed) {
    return allowed ? behind[to] + a.emitted(t + 1, utterance, labels[to]) : log_of_zero();
  };
  const bool skips = state + 2 < states && a.skips_to(utterance, state + 2);
  return log_sum(path(state, true), path(state + 1, state + 1 < states), path(state + 2, skips));
}

/// -log of the utterance's likelihood, from the alphas of its last frame.
[[nodiscard]] HALFSCOPE_HD float ctc_loss_of(const CtcArrays& a, std::int64_t utterance) {
  const std::int64_t states = a.states_of(utterance);
  const float* const last = a.alpha + a.frame(a.frames[utterance] - 1, utterance) * a.extents.states;
  return -log_sum(last[states - 1], states > 1 ? last[states - 2] : log_of_zero(), log_of_zero());
}

/// The derivative of an utterance's loss by one of its logits, where `gamma` holds alpha + beta.
[[nodiscard]] HALFSCOPE_HD float ctc_slope(const CtcArrays& a, std::int64_t t, std::int64_t utterance,
                                           std::int64_t label, float loss) {
  if (t >= a.frames[utterance]) return 0;
  const std::int32_t* const labels = a.labels_of(utterance);
  const float* const gamma = a.alpha + a.frame(t, utterance) * a.extents.states;
  float share = 0;
  for (std::int64_t s = 0; s < a.states_of(utterance); ++s) {
    if (labels[s] == label) share += exp(gamma[s] + loss);
  }
  return exp(a.emitted(t, utterance, static_cast<std::int32_t>(label))) - share;
}

}  // namespace halfscope
