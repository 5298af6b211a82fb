// Checks the targets and loops over the utterances, each whole in one thread.
#include "lib/nn/ctc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include <halfscope/core/parallel.hpp>

#include "lib/nn/ctc_element.hpp"
#include "lib/nn/sizes.hpp"

namespace halfscope {
namespace {

/// Frames that the labels need: one each, and a blank between equal ones.
std::int64_t frames_needed(std::span<const std::int32_t> labels) {
  auto needed = static_cast<std::int64_t>(labels.size());
  for (std::size_t i = 1; i < labels.size(); ++i) needed += labels[i] == labels[i - 1] ? 1 : 0;
  return needed;
}

void check_utterance(std::size_t utterance, std::int64_t frames, std::span<const std::int32_t> labels,
                     const CtcExtents& extents) {
  for (const std::int32_t label : labels) {
    if (label > ctc_blank && label < extents.labels) continue;
    throw InvalidArgument(
        fmt::format("ctc: label {} of utterance {} is not in [1, {})", label, utterance, extents.labels));
  }
  if (frames < 1 || frames > extents.time) {
    throw InvalidArgument(
        fmt::format("ctc: utterance {} of {} frames; give 1 to {}", utterance, frames, extents.time));
  }
  if (frames < frames_needed(labels)) {
    throw InvalidArgument(fmt::format(
        "ctc: utterance {} has {} frames for {} labels, which need {}: one each and one between equal ones",
        utterance, frames, labels.size(), frames_needed(labels)));
  }
}

CtcArrays arrays_of(const CtcTargets& targets, const CtcPaths& paths) {
  return {targets.extents(),
          targets.frames().data(),
          targets.counts().data(),
          targets.state_labels().data(),
          paths.log_probability.data(),
          paths.alpha.data()};
}

void check_paths(const CtcTargets& targets, const CtcPaths& paths, std::size_t losses) {
  const CtcExtents& e = targets.extents();
  const auto frames = static_cast<std::size_t>(e.time * e.batch);
  check_sizes("ctc", paths.log_probability.size(), frames * static_cast<std::size_t>(e.labels));
  check_sizes("ctc", paths.alpha.size(), frames * static_cast<std::size_t>(e.states));
  check_sizes("ctc", losses, static_cast<std::size_t>(e.batch));
}

/// The recursion forward through the frames of one utterance.
void fill_alpha(const CtcArrays& a, std::int64_t utterance, const Quantizer& stored) {
  for (std::int64_t t = 0; t < a.frames[utterance]; ++t) {
    float* const alpha = a.alpha + a.frame(t, utterance) * a.extents.states;
    for (std::int64_t s = 0; s < a.extents.states; ++s) {
      alpha[s] = round(alpha_at(a, t, utterance, s), stored);
    }
  }
}

/// Adds beta to alpha, backward through the frames of one utterance; `two` has room for two frames' betas of
/// the whole batch.
void add_beta(const CtcArrays& a, std::int64_t utterance, const Quantizer& stored, float* two) {
  const std::int64_t frame_size = a.extents.batch * a.extents.states;
  for (std::int64_t t = a.frames[utterance] - 1; t >= 0; --t) {
    float* const beta = two + t % 2 * frame_size;
    const float* const after = two + (t + 1) % 2 * frame_size;
    float* const gamma = a.alpha + a.frame(t, utterance) * a.extents.states;
    for (std::int64_t s = 0; s < a.extents.states; ++s) {
      const float value = round(beta_at(a, t, utterance, s, after), stored);
      beta[utterance * a.extents.states + s] = value;
      gamma[s] += value;
    }
  }
}

}  // namespace

CtcTargets::CtcTargets(const LabelSequences& sequences, CtcExtents extents) : extents_(extents) {
  const auto batch = static_cast<std::size_t>(extents.batch);
  check_sizes("ctc", sequences.frames.size(), batch);
  check_sizes("ctc", sequences.counts.size(), batch);
  std::int32_t most = 0;
  std::int64_t all = 0;
  for (const std::int32_t count : sequences.counts) {
    if (count < 0) throw InvalidArgument(fmt::format("ctc: {} labels; give 0 or more", count));
    most = std::max(most, count);
    all += count;
  }
  check_sizes("ctc", sequences.labels.size(), static_cast<std::size_t>(all));
  extents_.states = 2 * std::int64_t{most} + 1;
  std::vector<std::int32_t> states(batch * static_cast<std::size_t>(extents_.states), -1);
  std::size_t first = 0;
  for (std::size_t b = 0; b < batch; ++b) {
    const auto count = static_cast<std::size_t>(sequences.counts[b]);
    const auto labels = sequences.labels.subspan(first, count);
    check_utterance(b, sequences.frames[b], labels, extents_);
    std::int32_t* const own = states.data() + b * static_cast<std::size_t>(extents_.states);
    std::fill_n(own, 2 * count + 1, ctc_blank);
    for (std::size_t i = 0; i < count; ++i) own[2 * i + 1] = labels[i];
    first += count;
  }
  frames_ = Memory<std::int32_t>::from(sequences.frames);
  counts_ = Memory<std::int32_t>::from(sequences.counts);
  state_labels_ = Memory<std::int32_t>::from(states);
}

void ctc_losses(std::span<const float> logits, const CtcTargets& targets, const Quantizer& stored,
                const CtcPaths& paths, std::span<float> losses) {
  check_sizes("ctc", logits.size(), paths.log_probability.size());
  check_paths(targets, paths, losses.size());
  if (active_device() == Device::cuda) return cuda::ctc_losses(logits, targets, stored, paths, losses);
  const CtcArrays a = arrays_of(targets, paths);
  const std::int64_t labels = a.extents.labels;
  parallel_for(a.extents.batch, [&](std::int64_t utterance) noexcept {
    for (std::int64_t t = 0; t < a.extents.time; ++t) {
      const std::int64_t at = a.frame(t, utterance) * labels;
      log_softmax(logits.data() + at, labels, a.log_probability + at);
    }
    fill_alpha(a, utterance, stored);
    losses[static_cast<std::size_t>(utterance)] = ctc_loss_of(a, utterance);
  });
}

void ctc_losses_gradient(const CtcTargets& targets, const Quantizer& stored, const DeviceRatio& factor,
                         std::span<const float> losses, const CtcPaths& paths) {
  check_paths(targets, paths, losses.size());
  if (active_device() == Device::cuda)
    return cuda::ctc_losses_gradient(targets, stored, factor, losses, paths);
  const CtcArrays a = arrays_of(targets, paths);
  const float by = factor.value();
  Memory<float> two(static_cast<std::size_t>(2 * a.extents.batch * a.extents.states));
  parallel_for(a.extents.batch, [&](std::int64_t utterance) noexcept {
    add_beta(a, utterance, stored, two.data());
    for (std::int64_t t = 0; t < a.extents.time; ++t) {
      float* const slopes = a.log_probability + a.frame(t, utterance) * a.extents.labels;
      for (std::int64_t k = 0; k < a.extents.labels; ++k) {
        slopes[k] = ctc_slope(a, t, utterance, k, losses[static_cast<std::size_t>(utterance)]) * by;
      }
    }
  });
}

}  // namespace halfscope
