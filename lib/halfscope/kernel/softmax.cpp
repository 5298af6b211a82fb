// Softmax with cross entropy: rows are independent, one thread owns a row.
#include <halfscope/kernel/softmax.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <halfscope/core/parallel.hpp>
#include <halfscope/kernel/elementary.hpp>

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

constexpr std::int64_t elements_per_task = 4096;

/// Consecutive rows, all that one task reads and writes.
struct Rows {
  const float* logits;  // (rows, classes)
  float* probability;   // (rows, classes)
  std::size_t classes;
  const std::int32_t* labels;  // (rows)
  float* loss;                 // (rows)
};

/// The exponentials of all rows are one loop, since a row of few classes fills no vector.
void softmax_rows(const Rows& rows, std::size_t count, const AccumulateModel& model) {
  const std::size_t classes = rows.classes;
  for (std::size_t r = 0; r < count; ++r) {
    const float* x = rows.logits + r * classes;
    float* p = rows.probability + r * classes;
    const float largest = *std::max_element(x, x + classes);
    rows.loss[r] = x[static_cast<std::size_t>(rows.labels[r])] - largest;
    for (std::size_t c = 0; c < classes; ++c) p[c] = x[c] - largest;
  }
  dispatch_isa([&]<Isa isa>() {
    elementary_isa<isa>(Elementary::exp, rows.probability, rows.probability, count * classes);
  });
  for (std::size_t r = 0; r < count; ++r) {
    const std::span<float> p(rows.probability + r * classes, classes);
    const float sum = accumulate(p, model);
    for (float& value : p) value /= sum;
    rows.loss[r] = log(sum) - rows.loss[r];
  }
}

}  // namespace

void softmax_cross_entropy(std::span<const float> logits, std::span<const std::int32_t> labels,
                           const AccumulateModel& model, std::span<float> probability,
                           std::span<float> row_loss) {
  const std::size_t classes = checked_classes(logits.size(), labels);
  if (probability.size() != logits.size() || row_loss.size() != labels.size()) {
    throw RequestError("softmax: the outputs do not have the sizes of logits and labels");
  }
  const auto width = static_cast<std::int64_t>(classes);
  const std::int64_t rows_per_task = std::max<std::int64_t>(1, elements_per_task / width);
  parallel_for_ranges(static_cast<std::int64_t>(labels.size()), rows_per_task,
                      [&](std::int64_t first, std::int64_t count) {
                        Rows rows{logits.data() + first * width, probability.data() + first * width, classes,
                                  labels.data() + first, row_loss.data() + first};
                        softmax_rows(rows, static_cast<std::size_t>(count), model);
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
