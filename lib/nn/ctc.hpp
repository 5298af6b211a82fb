// Connectionist temporal classification (Graves et al., ICML 2006): the likelihood of a sequence of labels of
// which nobody says when each is spoken.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/core/host_device.hpp>
#include <halfscope/device/memory.hpp>
#include <halfscope/format/quantizer.hpp>

#include "lib/nn/device_ratio.hpp"

namespace halfscope {

/// Label 0 is the blank, which stands for no label and between equal ones.
inline constexpr std::int32_t ctc_blank = 0;

/// Targets of a batch of utterances, one behind the other.
struct LabelSequences {
  std::span<const std::int32_t> frames;  ///< frames of each utterance that count; the rest is padding
  std::span<const std::int32_t> counts;  ///< labels of each, 0 or more
  std::span<const std::int32_t> labels;  ///< the first utterance's first, none of them the blank
};

/// Extents of logits (time, batch, labels); an utterance of n labels has 2 n + 1 states, `states` at most.
struct CtcExtents {
  std::int64_t time = 0, batch = 0, labels = 0, states = 1;
};

/// The sequences, checked, on the active device.
class CtcTargets {
 public:
  /// Throws InvalidArgument for frames that are not in [1, time], labels that are not in [1, extents.labels),
  /// counts that do not fit, and targets that are impossible: an utterance needs a frame per label and one
  /// more between equal ones. `extents.states` comes from the counts.
  CtcTargets(const LabelSequences& sequences, CtcExtents extents);

  [[nodiscard]] const CtcExtents& extents() const { return extents_; }
  [[nodiscard]] std::span<const std::int32_t> frames() const { return frames_.values(); }
  [[nodiscard]] std::span<const std::int32_t> counts() const { return counts_.values(); }
  /// (batch, states): the label of each state, blanks at even ones, -1 behind an utterance's last.
  [[nodiscard]] std::span<const std::int32_t> state_labels() const { return state_labels_.values(); }

 private:
  CtcExtents extents_;
  Memory<std::int32_t> frames_, counts_, state_labels_;
};

/// Arrays of the forward pass that the backward pass needs.
struct CtcPaths {
  std::span<float> log_probability;  // (time, batch, labels): of the softmax over the labels
  std::span<float> alpha;            // (time, batch, states): log likelihoods of all that ends in a state
};

/// losses (batch) = -log likelihood of each utterance's labels, summed over all paths in log space. Each sum
/// is FP32; alpha and beta are stored as numbers of `stored`. States that no path reaches have -infinity,
/// which makes no NaN. Each of these throws InvalidArgument where the sizes do not fit.
void ctc_losses(std::span<const float> logits, const CtcTargets& targets, const Quantizer& stored,
                const CtcPaths& paths, std::span<float> losses);

/// paths.log_probability becomes the gradient of the logits: (softmax - the share of paths that emit a label
/// in a frame) * factor, 0 in padding.
void ctc_losses_gradient(const CtcTargets& targets, const Quantizer& stored, const DeviceRatio& factor,
                         std::span<const float> losses, const CtcPaths& paths);

/// The same operations on the device, which the functions above call where that is the active one.
namespace cuda {
void ctc_losses(std::span<const float> logits, const CtcTargets& targets, const Quantizer& stored,
                const CtcPaths& paths, std::span<float> losses);
void ctc_losses_gradient(const CtcTargets& targets, const Quantizer& stored, const DeviceRatio& factor,
                         std::span<const float> losses, const CtcPaths& paths);
}  // namespace cuda

}  // namespace halfscope
