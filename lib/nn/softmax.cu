// Softmax with cross entropy on the device: the ordered sums of rows are column sums of a transposed copy.
#include <halfscope/arithmetic/elementary.hpp>
#include <halfscope/device/memory.hpp>
#include <halfscope/kernel/detail/launch.cuh>
#include <halfscope/kernel/reduce/reduce.hpp>

#include "lib/nn/softmax.hpp"
#include "lib/nn/softmax_element.hpp"

namespace halfscope::cuda {
namespace {

// The analyzer takes arrays for empty whose sizes softmax.cpp has checked.
// NOLINTBEGIN(clang-analyzer-core.NullDereference)

/// The largest of the elements c of a row with c % parts == part, largest[row, part]; a NaN may be passed
/// over, since it makes the row's sum a NaN all the same.
struct LargestOfPart {
  const float* x;
  std::int64_t classes, parts;
  float* largest;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const float* const row = x + i / parts * classes;
    float here = row[i % parts];
    for (std::int64_t c = i % parts + parts; c < classes; c += parts) here = here < row[c] ? row[c] : here;
    largest[i] = here;
  }
};

/// e^(x - largest of the row) into probability, and transposed.
struct Exponentials {
  const float* x;
  const float* largest;  // (rows)
  std::int64_t rows, classes;
  float* probability;
  float* transposed;  // (classes, rows)
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const std::int64_t r = i / classes, c = i % classes;
    const float power = exp(x[i] - largest[r]);
    probability[i] = power;
    transposed[c * rows + r] = power;
  }
};

struct Divide {
  const float* sums;
  std::int64_t classes;
  float* probability;
  HALFSCOPE_HD void operator()(std::int64_t i) const { probability[i] /= sums[i / classes]; }
};

struct RowLoss {
  const float* x;
  const std::int32_t* labels;
  const float* largest;
  const float* sums;
  std::int64_t classes;
  float* row_loss;
  HALFSCOPE_HD void operator()(std::int64_t r) const {
    row_loss[r] = log(sums[r]) - (x[r * classes + labels[r]] - largest[r]);
  }
};

struct Gradient {
  const std::int32_t* labels;
  std::int64_t classes;
  DeviceRatio factor;
  float* probability;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const float p = probability[i];
    probability[i] = (i % classes == labels[i / classes] ? p - 1.0f : p) * factor.value();
  }
};

struct SmoothLoss {
  const float* x;
  const std::int32_t* labels;
  std::int64_t classes;
  float smoothing;
  float* row_loss;
  HALFSCOPE_HD void operator()(std::int64_t r) const {
    row_loss[r] += smoothed_part(x + r * classes, classes, labels[r], smoothing);
  }
};

struct SmoothProbability {
  const std::int32_t* labels;
  std::int64_t classes;
  float smoothing, uniform;
  float* probability;
  HALFSCOPE_HD void operator()(std::int64_t i) const {
    const float p = probability[i] - uniform;
    probability[i] = i % classes == labels[i / classes] ? p + smoothing : p;
  }
};

// NOLINTEND(clang-analyzer-core.NullDereference)

Memory<float> largest_of_rows(std::span<const float> x, std::int64_t rows, std::int64_t classes) {
  constexpr std::int64_t most_parts = 32;
  const std::int64_t parts = classes < most_parts ? classes : most_parts;
  Memory<float> of_parts(static_cast<std::size_t>(rows * parts)), largest(static_cast<std::size_t>(rows));
  for_each(rows * parts, LargestOfPart{on_device(x), classes, parts, of_parts.data()}, "softmax");
  for_each(rows, LargestOfPart{of_parts.data(), parts, 1, largest.data()}, "softmax");
  return largest;
}

}  // namespace

void softmax_cross_entropy(std::span<const float> logits, std::span<const std::int32_t> labels,
                           const AccumulateModel& model, std::span<float> probability,
                           std::span<float> row_loss) {
  const std::int64_t rows = std::ssize(labels), elements = std::ssize(logits), classes = elements / rows;
  const auto label = Memory<std::int32_t>::from(labels);
  const Memory<float> largest = largest_of_rows(logits, rows, classes);
  Memory<float> transposed(logits.size()), sums(labels.size());
  for_each(elements,
           Exponentials{on_device(logits), largest.data(), rows, classes, on_device(probability),
                        transposed.data()},
           "softmax");
  cuda::column_sums({.x = transposed.data(), .rows = classes, .columns = rows}, model, sums.values());
  for_each(elements, Divide{sums.data(), classes, on_device(probability)}, "softmax");
  for_each(
      rows,
      RowLoss{on_device(logits), label.data(), largest.data(), sums.data(), classes, on_device(row_loss)},
      "softmax");
}

void smooth_losses(std::span<const float> logits, std::span<const std::int32_t> labels, float smoothing,
                   std::span<float> row_loss) {
  const std::int64_t rows = std::ssize(labels);
  const auto label = Memory<std::int32_t>::from(labels);
  for_each(
      rows,
      SmoothLoss{on_device(logits), label.data(), std::ssize(logits) / rows, smoothing, on_device(row_loss)},
      "smooth_losses");
}

void smooth_probability(std::span<const std::int32_t> labels, float smoothing, std::span<float> probability) {
  const std::int64_t classes = std::ssize(probability) / std::ssize(labels);
  const auto label = Memory<std::int32_t>::from(labels);
  for_each(std::ssize(probability),
           SmoothProbability{label.data(), classes, smoothing, smoothing / static_cast<float>(classes),
                             on_device(probability)},
           "smooth_probability");
}

void softmax_cross_entropy_gradient(std::span<const std::int32_t> labels, const DeviceRatio& factor,
                                    std::span<float> probability) {
  const std::int64_t elements = std::ssize(probability);
  (void)on_device(factor.numerator);
  const auto label = Memory<std::int32_t>::from(labels);
  for_each(elements, Gradient{label.data(), elements / std::ssize(labels), factor, on_device(probability)},
           "softmax_gradient");
}

}  // namespace halfscope::cuda
