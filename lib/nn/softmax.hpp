// Softmax with cross entropy over the rows of a matrix.
#pragma once

#include <cstdint>
#include <span>

#include <halfscope/arithmetic/accumulate.hpp>
#include <halfscope/device/device.hpp>
#include <halfscope/kernel/detail/dispatch.hpp>

#include "lib/nn/device_ratio.hpp"

namespace halfscope {

/// For logits (rows, classes) and labels (rows, each in [0, classes)): probability[r, c] = softmax, and
/// row_loss[r] = -log(probability of the label), from the row's maximum m and log of the sum of e^(x - m).
/// The sum is `accumulate` of the row's exponentials, bit for bit; everything else is FP32. Throws
/// InvalidArgument for a label out of range. The labels are in the host's memory, whatever the active device.
void softmax_cross_entropy(std::span<const float> logits, std::span<const std::int32_t> labels,
                           const AccumulateModel& model, std::span<float> probability,
                           std::span<float> row_loss);

/// probability becomes the gradient of the logits: (probability - one_hot(label)) * factor.
void softmax_cross_entropy_gradient(std::span<const std::int32_t> labels, const DeviceRatio& factor,
                                    std::span<float> probability);

/// Label smoothing (Szegedy et al., CVPR 2016, section 7): the target has `smoothing` of a uniform
/// distribution and 1 - smoothing of the label. Adds smoothing * (x[label] - mean of x) to each row's loss, x
/// the row's logits, whose mean is a sum in ascending order in FP32. A `smoothing` of 0 changes nothing.
void smooth_losses(std::span<const float> logits, std::span<const std::int32_t> labels, float smoothing,
                   std::span<float> row_loss);
/// Subtracts smoothing / classes from every probability and adds `smoothing` to the label's, so that
/// `softmax_cross_entropy_gradient` makes the smoothed loss's gradient of it.
void smooth_probability(std::span<const std::int32_t> labels, float smoothing, std::span<float> probability);

/// The same on the device, which the above call where that is the active one.
namespace cuda {
void smooth_losses(std::span<const float> logits, std::span<const std::int32_t> labels, float smoothing,
                   std::span<float> row_loss);
void smooth_probability(std::span<const std::int32_t> labels, float smoothing, std::span<float> probability);
void softmax_cross_entropy(std::span<const float> logits, std::span<const std::int32_t> labels,
                           const AccumulateModel& model, std::span<float> probability,
                           std::span<float> row_loss);
void softmax_cross_entropy_gradient(std::span<const std::int32_t> labels, const DeviceRatio& factor,
                                    std::span<float> probability);
}  // namespace cuda

/// Rows that one call of `softmax_rows_isa` takes: a lane each of a sum over them.
inline constexpr std::size_t softmax_rows = 16;

/// Consecutive rows, at most `softmax_rows`, with room for a transposed copy of their exponentials and for
/// the sums of chunks.
struct SoftmaxRows {
  std::size_t count = 0;
  std::size_t classes = 0;
  const float* logits = nullptr;         // (count, classes)
  const std::int32_t* labels = nullptr;  // (count)
  float* probability = nullptr;          // (count, classes)
  float* row_loss = nullptr;             // (count)
  float* scratch = nullptr;              // (2 classes, softmax_rows)
};

/// The forward pass of some rows in one thread, per instruction set.
template <Isa isa>
void softmax_rows_isa(const SoftmaxRows& rows, const AccumulateModel& model);

}  // namespace halfscope
