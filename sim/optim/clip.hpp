// Gradient clipping by the norm of all gradients together (Pascanu et al., ICML 2013).
#pragma once

#include <span>

#include "sim/tape/parameter.hpp"

namespace halfscope {

/// How many sums of squares the gradients of `store` have.
[[nodiscard]] std::size_t square_sums(const ParameterStore& store);

/// Sums of squares of every gradient times `factor`, each product rounded, into `sums`, in
/// memory of the active device, which is not waited for.
void sum_gradient_squares(const ParameterStore& store, float factor, std::span<double> sums);

/// Euclidean norm over every element of every gradient of which `sums` are: added up in double, in eight
/// interleaved sums per parameter, then parameter after parameter.
[[nodiscard]] double gradient_norm(std::span<const double> sums);

/// By which gradients of that norm are multiplied: 1 where it is not above `largest_norm`. A norm that is
/// infinite or NaN makes them NaN or 0, as in FP32 training.
[[nodiscard]] float clip_factor(double norm, double largest_norm);

}  // namespace halfscope
