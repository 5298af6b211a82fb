// An optimizer's step: from a gradient and the optimizer's state to new weights, in one pass over the arrays.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <tuple>

#include <halfscope/device/device.hpp>
#include <halfscope/format/quantizer.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>
#include <halfscope/kernel/update/detail/update_watch.hpp>

#include "lib/nn/update_rules.hpp"

namespace halfscope {

/// weights += the optimizer's update from gradient * unscale * clip.
struct WeightUpdate {
  std::span<const float> gradient;
  float unscale = 1, clip = 1;  ///< multiplied one after the other, each product rounded
  std::span<float> weights;
  /// One magnitude's bits, to be raised to the largest of the new weights: a NaN's are above infinity's.
  std::span<std::uint32_t> largest;
  std::optional<UpdateWatch> watch{};  ///< where the update is counted while it is made
};

/// An array for each of the rule's slots, all of the weights' size.
using StateSlots = std::span<const std::span<float>>;

/// The weights' update by `rule`. `state` rounds the constants and every operation's result: with FP16
/// optimizer state the arithmetic is FP16's too (and an epsilon of 1e-8 becomes 0). Watched updates are
/// counted as by `update_effect` and `update_ratios`. Throws InvalidArgument where sizes or the number of
/// slots do not fit, and for state that is rounded stochastically.
void optimizer_step(const WeightUpdate& update, const UpdateRule& rule, const Quantizer& state,
                    StateSlots slots);

/// The same operations on the device, which the function above calls where that is the active one.
namespace cuda {
void optimizer_step(const WeightUpdate& update, const UpdateRule& rule, const Quantizer& state,
                    StateSlots slots);
}

/// Gradients and where the updates from them go, before they are added to the weights.
struct UpdateRun {
  const float* gradient;
  float unscale, clip;
  const float* weights;
  float* update;
  std::int64_t count;
};

/// Loop of one rule, in one thread; each of its `slots` begins where the run does.
template <typename Rule>
using UpdateLoop = void (*)(const UpdateRun& run, const Rule& rule, const Quantizer& state,
                            float* const* slots);

template <typename Rules>
struct UpdateLoopsOf;
template <typename... Rules>
struct UpdateLoopsOf<std::variant<Rules...>> {
  using type = std::tuple<UpdateLoop<Rules>...>;
};

/// The loops of all rules, compiled for one instruction set.
template <Isa isa>
struct UpdateLoops {
  static const UpdateLoopsOf<UpdateRule>::type all;
};
template <>
const UpdateLoopsOf<UpdateRule>::type UpdateLoops<Isa::baseline>::all;
template <>
const UpdateLoopsOf<UpdateRule>::type UpdateLoops<Isa::avx2>::all;
template <>
const UpdateLoopsOf<UpdateRule>::type UpdateLoops<Isa::avx512>::all;

}  // namespace halfscope
