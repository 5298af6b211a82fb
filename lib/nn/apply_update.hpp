// A whole weight update on the device in one pass over its arrays; on the CPU the kernels of scaling, the
// optimizers, update_effect and adding do the same one after the other.
#pragma once

#include <optional>
#include <span>

#include <halfscope/kernel/update/update_watch.hpp>

#include "lib/nn/optimizer_step.hpp"

namespace halfscope::cuda {

/// weights += the optimizer's update from gradient * unscale * clip.
struct AppliedUpdate {
  std::span<const float> gradient;
  float unscale = 1, clip = 1;  ///< multiplied one after the other, each product rounded
  std::span<float> weights;
  /// One magnitude's bits, to be raised to the largest of the new weights: a NaN's are above infinity's.
  std::span<std::uint32_t> largest;
  std::optional<UpdateWatch> watch{};
};

/// As sgd_update and adam_update, whose update is `add`ed; counted as `update_effect` and `ratio_histogram`
/// count it.
void apply_sgd(const AppliedUpdate& update, const SgdStep& step, const Quantizer& state,
               std::span<float> velocity);
void apply_adam(const AppliedUpdate& update, const AdamStep& step, const Quantizer& state,
                std::span<float> first, std::span<float> second);

}  // namespace halfscope::cuda
