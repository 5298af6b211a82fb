// Softmax with cross entropy: rows are independent, one thread owns a row.
#include <halfscope/kernel/softmax.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/core/parallel.hpp>

namespace halfscope {
namespace {

std::size_t checked_classes(std::size_t elements, std::span<const std::int32_t> labels) {
  if (labels.empty() || elements % labels.size() != 0 || elements == 0) {
    throw RequestError(fmt::format("softmax: {} logits are no {} rows", elements, labels.size()));
  }
  const std::size_t classes = elements / labels.size();
  for (std::size_t r = 0; r < labels.size(); ++r) {
    if (labels[r] < 0 || static_cast<std::size_t>(labels[r]) >= classes) {
      throw RequestError(fmt::format("softmax: label {} of row {} is not in [0, {})", labels[r], r, classes));
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
    throw RequestError("softmax: the outputs do not have the sizes of logits and labels");
  }
  parallel_for(static_cast<std::int64_t>(labels.size()), [&](std::int64_t row) {
    const auto r = static_cast<std::size_t>(row);
    const std::span<const float> x = logits.subspan(r * classes, classes);
    const std::span<float> p = probability.subspan(r * classes, classes);
    const float largest = *std::max_element(x.begin(), x.end());
    for (std::size_t c = 0; c < classes; ++c) p[c] = exp(x[c] - largest);
    const float sum = accumulate(p, model);
    for (std::size_t c = 0; c < classes; ++c) p[c] = p[c] / sum;
    row_loss[r] = log(sum) - (x[static_cast<std::size_t>(labels[r])] - largest);
  });
}

void softmax_cross_entropy_gradient(std::span<const std::int32_t> labels, float factor,
                                    std::span<float> probability) {
  const std::size_t classes = checked_classes(probability.size(), labels);
  parallel_for(static_cast<std::int64_t>(labels.size()), [&](std::int64_t row) {
    const auto r = static_cast<std::size_t>(row);
    const std::span<float> p = probability.subspan(r * classes, classes);
    p[static_cast<std::size_t>(labels[r])] -= 1.0f;
    for (float& value : p) value *= factor;
  });
}

}  // namespace halfscope
