// Element-wise losses and their gradients.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/device/device.hpp>

#include "lib/nn/device_ratio.hpp"

namespace halfscope {

/// losses = max(x, 0) - x t + log(1 + e^-|x|), whose exponential never exceeds 1: the binary cross entropy of
/// logits x and targets t. Each of these throws InvalidArgument where the sizes do not fit.
void sigmoid_losses(std::span<const float> x, std::span<const float> targets, std::span<float> losses);
/// x_gradient = (sigmoid(x) - t) * factor.
void sigmoid_losses_gradient(std::span<const float> x, std::span<const float> targets,
                             const DeviceRatio& factor, std::span<float> x_gradient);

/// losses = -t log p - (1 - t) log(1 - p) of probabilities p and targets t, each logarithm -100 where it
/// would be less. A p that is outside [0, 1] or NaN gives NaN.
void probability_losses(std::span<const float> p, std::span<const float> targets, std::span<float> losses);
/// p_gradient = (p - t) / max(p (1 - p), 1e-12) * factor.
void probability_losses_gradient(std::span<const float> p, std::span<const float> targets,
                                 const DeviceRatio& factor, std::span<float> p_gradient);

/// Targets for some rows of x (..., columns), on the active device like everything else.
struct TargetRows {
  std::span<const std::int64_t> rows;  ///< all within x
  std::span<const float> values;       // (rows, columns)
};
/// losses (rows, columns): of the differences d of x and the targets, d^2 / 2 where |d| < 1, else |d| - 1/2.
void smooth_l1_losses(std::span<const float> x, const TargetRows& targets, std::span<float> losses);
/// Adds the derivatives, d within [-1, 1], times `factor` to the rows of x_gradient that have targets; a row
/// has one at most.
void smooth_l1_losses_gradient(std::span<const float> x, const TargetRows& targets, const DeviceRatio& factor,
                               std::span<float> x_gradient);

/// The same operations on the device, which the functions above call where that is the active one.
namespace cuda {
void sigmoid_losses(std::span<const float> x, std::span<const float> targets, std::span<float> losses);
void sigmoid_losses_gradient(std::span<const float> x, std::span<const float> targets,
                             const DeviceRatio& factor, std::span<float> x_gradient);
void probability_losses(std::span<const float> p, std::span<const float> targets, std::span<float> losses);
void probability_losses_gradient(std::span<const float> p, std::span<const float> targets,
                                 const DeviceRatio& factor, std::span<float> p_gradient);
void smooth_l1_losses(std::span<const float> x, const TargetRows& targets, std::span<float> losses);
void smooth_l1_losses_gradient(std::span<const float> x, const TargetRows& targets, const DeviceRatio& factor,
                               std::span<float> x_gradient);
}  // namespace cuda

}  // namespace halfscope
