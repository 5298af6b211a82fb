// Counts of weight updates that vanish, or would vanish without a master copy.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <halfscope/stats/tracker.hpp>

namespace halfscope {

/// Counts the updates dw that a weight w stored as `quantizer` says would not feel: dw != 0 and
/// round(round(w) + dw) == round(w), the sum taken exactly and rounded once. A stochastic quantizer is
/// sampled, with random bits that depend on the step and the tensor's name. Updates that make a weight
/// infinite or NaN are left out of `applied_over_intended`. Throws InvalidArgument if the spans differ in
/// size. Source: Micikevicius et al., section 3.1.
[[nodiscard]] UpdateCounters count_lost_updates(const Site& site, const Quantizer& quantizer,
                                                std::span<const float> weights,
                                                std::span<const float> updates);

/// Counters of a tensor of `elements` weights from the effect of its updates.
[[nodiscard]] UpdateCounters update_counters(std::string_view tensor, std::int64_t elements,
                                             const UpdateEffect& effect);

/// How a weight that is stored as `quantizer` says is taken to be stored, before and after an update at
/// `site`.
[[nodiscard]] WeightStorage weight_storage(const Site& site, const Quantizer& quantizer);

/// |dw| / |w| of the elements in which neither is zero, counted at the edges of `format`. Throws
/// InvalidArgument where the two differ in size.
[[nodiscard]] ExponentHistogram update_ratios(std::span<const float> weights, std::span<const float> updates,
                                              const FloatFormat& format = fp16);

}  // namespace halfscope
