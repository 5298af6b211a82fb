// Checks sizes; few elements of a step have such a loss, so most loops are plain.
#include <string>

#include "lib/nn/elementary.hpp"
#include "lib/nn/losses.hpp"
#include "lib/nn/losses_element.hpp"
#include "lib/nn/sizes.hpp"

namespace halfscope {
namespace {

/// Columns of a target.
std::size_t columns_of(const TargetRows& targets) {
  const std::size_t columns = targets.rows.empty() ? 0 : targets.values.size() / targets.rows.size();
  check_sizes("smooth_l1_losses", columns * targets.rows.size(), targets.values.size());
  return columns;
}

/// Calls visit(index into the targets, index into x) for each element that has a target.
template <typename Visit>
void for_targets(const TargetRows& targets, std::size_t columns, Visit&& visit) {
  std::size_t i = 0;
  for (const std::int64_t row : targets.rows) {
    for (std::size_t c = 0; c < columns; ++c) visit(i++, static_cast<std::size_t>(row) * columns + c);
  }
}

}  // namespace

void sigmoid_losses(std::span<const float> x, std::span<const float> targets, std::span<float> losses) {
  check_sizes("sigmoid_losses", x.size(), targets.size());
  check_sizes("sigmoid_losses", x.size(), losses.size());
  if (active_device() == Device::cuda) return cuda::sigmoid_losses(x, targets, losses);
  for (std::size_t i = 0; i < x.size(); ++i) losses[i] = negative_magnitude(x[i]);
  apply(Elementary::exp, losses, losses);
  for (float& loss : losses) loss += 1.0f;
  apply(Elementary::log, losses, losses);
  for (std::size_t i = 0; i < x.size(); ++i) losses[i] += sigmoid_loss_without_log(x[i], targets[i]);
}

void sigmoid_losses_gradient(std::span<const float> x, std::span<const float> targets,
                             const DeviceRatio& factor, std::span<float> x_gradient) {
  check_sizes("sigmoid_losses_gradient", x.size(), targets.size());
  check_sizes("sigmoid_losses_gradient", x.size(), x_gradient.size());
  if (active_device() == Device::cuda) return cuda::sigmoid_losses_gradient(x, targets, factor, x_gradient);
  apply(Elementary::sigmoid, x, x_gradient);
  const float by = factor.value();
  for (std::size_t i = 0; i < x.size(); ++i) x_gradient[i] = (x_gradient[i] - targets[i]) * by;
}

void probability_losses(std::span<const float> p, std::span<const float> targets, std::span<float> losses) {
  check_sizes("probability_losses", p.size(), targets.size());
  check_sizes("probability_losses", p.size(), losses.size());
  if (active_device() == Device::cuda) return cuda::probability_losses(p, targets, losses);
  for (std::size_t i = 0; i < p.size(); ++i) losses[i] = probability_loss(p[i], targets[i]);
}

void probability_losses_gradient(std::span<const float> p, std::span<const float> targets,
                                 const DeviceRatio& factor, std::span<float> p_gradient) {
  check_sizes("probability_losses_gradient", p.size(), targets.size());
  check_sizes("probability_losses_gradient", p.size(), p_gradient.size());
  if (active_device() == Device::cuda)
    return cuda::probability_losses_gradient(p, targets, factor, p_gradient);
  const float by = factor.value();
  for (std::size_t i = 0; i < p.size(); ++i) p_gradient[i] = probability_slope(p[i], targets[i]) * by;
}

void smooth_l1_losses(std::span<const float> x, const TargetRows& targets, std::span<float> losses) {
  const std::size_t columns = columns_of(targets);
  check_sizes("smooth_l1_losses", targets.values.size(), losses.size());
  if (active_device() == Device::cuda) return cuda::smooth_l1_losses(x, targets, losses);
  for_targets(targets, columns,
              [&](std::size_t i, std::size_t at) { losses[i] = smooth_l1_loss(x[at] - targets.values[i]); });
}

void smooth_l1_losses_gradient(std::span<const float> x, const TargetRows& targets, const DeviceRatio& factor,
                               std::span<float> x_gradient) {
  const std::size_t columns = columns_of(targets);
  check_sizes("smooth_l1_losses_gradient", x.size(), x_gradient.size());
  if (active_device() == Device::cuda) return cuda::smooth_l1_losses_gradient(x, targets, factor, x_gradient);
  const float by = factor.value();
  for_targets(targets, columns, [&](std::size_t i, std::size_t at) {
    x_gradient[at] += smooth_l1_slope(x[at] - targets.values[i]) * by;
  });
}

}  // namespace halfscope
