// Rules of the lints: constants of a training that a format turns into zero, one or infinity, a line each.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <halfscope/core/names.hpp>
#include <halfscope/format/quantizer.hpp>

namespace halfscope {

enum class ConstantKind : std::uint8_t {
  optimizer_epsilon,   ///< added to the root of a second moment
  epsilon,             ///< added to, or a lower bound of, what a module divides by
  epsilon_gradient,    ///< the same, at a row of zeros in a backward pass
  decay,               ///< the share of an average that a step keeps
  one_minus_decay,     ///< the share that a step adds
  square,              ///< the smallest normal number, times itself
  learning_rate,       ///< multiplied by every update
  warmup_rate,         ///< the learning rate of the first step
  update_beside_one,   ///< an update of a weight of 1, relative to it
  update_of_gradient,  ///< learning rate times gradient
  weight_decay,        ///< learning rate times decay
  largest_gradient,    ///< beside the loss
  factor,              ///< any other number that operations use
  count,               ///< the largest number that is reached in steps of 1
};
template <>
inline constexpr std::array<std::string_view, 14> enum_names<ConstantKind>{"optimizer_epsilon",
                                                                           "epsilon",
                                                                           "epsilon_gradient",
                                                                           "decay",
                                                                           "one_minus_decay",
                                                                           "square",
                                                                           "learning_rate",
                                                                           "warmup_rate",
                                                                           "update_beside_one",
                                                                           "update_of_gradient",
                                                                           "weight_decay",
                                                                           "largest_gradient",
                                                                           "factor",
                                                                           "count"};

/// A constant that its format does not hold.
struct LostConstant {
  double value = 0;
  double rounded = 0;       ///< to the nearest number, where the quantizer is stochastic
  double limit = 0;         ///< a value nearby that survives
  std::string consequence;  ///< a clause: "every update is 0"
};

/// The effect of `quantizer` on a constant, or nothing where the constant survives. An epsilon or a factor of
/// 0 survives.
[[nodiscard]] std::optional<LostConstant> lost_constant(ConstantKind kind, double value,
                                                        const Quantizer& quantizer);

}  // namespace halfscope
