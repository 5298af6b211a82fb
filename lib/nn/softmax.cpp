// Checks sizes and labels and splits the rows of a softmax over the threads.
#include <fmt/format.h>

#include <halfscope/core/parallel.hpp>
#include <halfscope/device/array.hpp>

#include "lib/nn/elementwise.hpp"
#include "lib/nn/softmax.hpp"
#include "lib/nn/softmax_element.hpp"

namespace halfscope {
namespace {

std::size_t checked_classes(std::size_t elements, std::span<const std::int32_t> labels) {
  if (labels.empty() || elements % labels.size() != 0 || elements == 0) {
    throw InvalidArgument(fmt::format("softmax: {} logits are no {} rows", elements, labels.size()));
  }
  const std::size_t classes = elements / labels.size();
  for (std::size_t r = 0; r < labels.size(); ++r) {
    if (labels[r] < 0 || static_cast<std::size_t>(labels[r]) >= classes) {
      throw InvalidArgument(
          fmt::format("softmax: label {} of row {} is not in [0, {})", labels[r], r, classes));
    }
  }
  return classes;
}

}  // namespace

void softmax_cross_entropy(std::span<const float> logits, std::span<const std::int32_t> labels,
                           const AccumulateModel& model, std::span<float> probability,
                           std::span<float> row_loss) {
  const std::size_t classes = checked_classes(logits.size(), labels);
  if (probability.size() != logits.size() || row_loss.size() != labels.size()) {
    throw InvalidArgument("softmax: the outputs do not have the sizes of logits and labels");
  }
  check_reduction_model(model);
  if (active_device() == Device::cuda)
    return cuda::softmax_cross_entropy(logits, labels, model, probability, row_loss);
  parallel_for_ranges(static_cast<std::int64_t>(labels.size()), static_cast<std::int64_t>(softmax_rows),
                      [&](std::int64_t first, std::int64_t count) {
                        const auto row = static_cast<std::size_t>(first);
                        Array scratch({static_cast<std::int64_t>(2 * classes * softmax_rows)});
                        const SoftmaxRows rows{.count = static_cast<std::size_t>(count),
                                               .classes = classes,
                                               .logits = logits.data() + row * classes,
                                               .labels = labels.data() + row,
                                               .probability = probability.data() + row * classes,
                                               .row_loss = row_loss.data() + row,
                                               .scratch = scratch.data()};
                        dispatch_isa([&]<Isa isa>() { softmax_rows_isa<isa>(rows, model); });
                      });
}

void smooth_losses(std::span<const float> logits, std::span<const std::int32_t> labels, float smoothing,
                   std::span<float> row_loss) {
  const std::size_t classes = checked_classes(logits.size(), labels);
  if (row_loss.size() != labels.size()) throw InvalidArgument("softmax: losses and labels differ in size");
  if (smoothing == 0) return;
  if (active_device() == Device::cuda) return cuda::smooth_losses(logits, labels, smoothing, row_loss);
  for (std::size_t r = 0; r < labels.size(); ++r) {
    row_loss[r] +=
        smoothed_part(logits.data() + r * classes, static_cast<std::int64_t>(classes), labels[r], smoothing);
  }
}

void smooth_probability(std::span<const std::int32_t> labels, float smoothing, std::span<float> probability) {
  const auto classes = static_cast<std::int64_t>(checked_classes(probability.size(), labels));
  if (smoothing == 0) return;
  if (active_device() == Device::cuda) return cuda::smooth_probability(labels, smoothing, probability);
  const float uniform = smoothing / static_cast<float>(classes);
  parallel_for(std::ssize(labels), [&](std::int64_t r) noexcept {
    float* const row = probability.data() + r * classes;
    for (std::int64_t c = 0; c < classes; ++c) row[c] -= uniform;
    row[labels[static_cast<std::size_t>(r)]] += smoothing;
  });
}

void softmax_cross_entropy_gradient(std::span<const std::int32_t> labels, const DeviceRatio& factor,
                                    std::span<float> probability) {
  const std::size_t classes = checked_classes(probability.size(), labels);
  if (active_device() == Device::cuda)
    return cuda::softmax_cross_entropy_gradient(labels, factor, probability);
  for (std::size_t r = 0; r < labels.size(); ++r) {
    probability[r * classes + static_cast<std::size_t>(labels[r])] -= 1.0f;
  }
  scale(probability, factor.value(), probability);
}

}  // namespace halfscope
