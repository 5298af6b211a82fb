// Gradient clipping by the norm of all gradients together (Pascanu et al., ICML 2013).
#pragma once

#include "sim/parameter.hpp"

namespace halfscope {

/// Euclidean norm over every element of every gradient, added up in double: in eight interleaved sums per
/// parameter, then parameter after parameter.
[[nodiscard]] double gradient_norm(const ParameterStore& store);

/// What gradients of that norm are multiplied by: 1 where it is not above `largest_norm`.
[[nodiscard]] float clip_factor(double norm, double largest_norm);

/// Multiplies all gradients, which must be unscaled, by largest_norm / norm where their norm is larger; a
/// norm that is infinite or NaN makes them NaN or 0, as in FP32 training.
void clip_gradients(ParameterStore& store, double largest_norm);

}  // namespace halfscope
