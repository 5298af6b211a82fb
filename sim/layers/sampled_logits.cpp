// Forward and backward of the logits of a sampled softmax: a dot product per row, and a matrix product.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include <halfscope/kernel/reduce/reduce.hpp>

#include "lib/nn/elementwise.hpp"
#include "lib/nn/strided_elementwise.hpp"
#include "sim/layers/layers.hpp"
#include "sim/layers/matrix.hpp"

namespace halfscope {
namespace {

/// Extents of the layer: x (rows, width), logits (rows, 1 + samples).
struct SampledExtents {
  std::int64_t rows = 0, width = 0, samples = 0;

  [[nodiscard]] std::int64_t columns() const { return 1 + samples; }
};

SampledExtents extents_of(const Tape& tape, const std::string& name, TensorRef x, const SampledWords& words) {
  const Shape& input = tape.value(x).shape();
  const auto rows = std::ssize(words.labels), samples = std::ssize(words.samples);
  const std::int64_t width = input.empty() ? 0 : input.back();
  const Shape wanted{rows + samples, width};
  const bool fits = width > 0 && rows > 0 && samples > 0 &&
                    static_cast<std::int64_t>(tape.value(x).size()) == rows * width &&
                    tape.value(words.weights).shape() == wanted &&
                    tape.value(words.biases).shape() == Shape{rows + samples, 1} &&
                    std::ssize(words.correction) == rows + samples;
  if (fits) return {rows, width, samples};
  throw InvalidArgument(
      fmt::format("layer {}: input {}, weights {} and biases {} for {} labels and {} samples; give (labels, "
                  "width), (labels + samples, width) and (labels + samples, 1)",
                  name, to_string(input), to_string(tape.value(words.weights).shape()),
                  to_string(tape.value(words.biases).shape()), rows, samples));
}

/// (columns, rows) of the first `rows` rows of a matrix, as floats.
Array columns_first(const Array& matrix, std::int64_t rows, std::int64_t columns) {
  Array turned({columns, rows});
  const Array floats = to_dtype(matrix.clone(), DType::f32);
  transpose(floats.view().part(0, static_cast<std::size_t>(rows * columns)), rows, columns, turned.view());
  return turned;
}

/// The last `rows` rows of a matrix (all, columns).
Array last_rows(const Array& matrix, std::int64_t rows, std::int64_t columns) {
  Array part({rows, columns}, matrix.dtype());
  const auto size = static_cast<std::size_t>(rows * columns);
  copy_columns({rows, columns}, {matrix.view().part(matrix.size() - size, size), 0, columns},
               {part.view(), 0, columns});
  return part;
}

/// y (width, rows) = x (width, rows), each column times its factor.
void scale_columns(const SampledExtents& e, const Array& x, const ConstColumns& factors, Array& y) {
  combine(Combination::product, {e.width, e.rows}, {x.view(), 0, e.rows}, factors, {y.view(), 0, e.rows});
}

/// Adds the bias of each word, and takes the logarithm of how often it is expected off.
void correct(const SampledExtents& e, const Array& biases, const SampledWords& words, Array& logits) {
  Array offsets = to_dtype(biases.clone(), DType::f32);
  Array correction(offsets.shape(), Device::cpu);
  std::ranges::copy(words.correction, correction.data());
  combine(Combination::difference, offsets.view(), correction.to(active_device()).view(), offsets.values());
  const auto rows = static_cast<std::size_t>(e.rows);
  const ConstArrayView of_labels = offsets.view().part(0, rows);
  const ConstArrayView of_samples = offsets.view().part(rows, offsets.size() - rows);
  const Columns labels{logits.view(), 0, e.columns()}, samples{logits.view(), 1, e.columns()};
  combine(Combination::sum, {e.rows, 1}, labels, {of_labels, 0, 1}, labels);
  combine(Combination::sum, {e.rows, e.samples}, samples, {of_samples, 0, 0}, samples);
}

/// Samples that are a row's own label are out of its race: a logit far below every other.
void leave_out_hits(const SampledExtents& e, const SampledWords& words, Array& logits) {
  Array penalty({e.rows, e.columns()}, Device::cpu);
  std::ranges::fill(penalty.values(), 0.0f);
  for (std::int64_t row = 0; row < e.rows; ++row) {
    for (std::int64_t j = 0; j < e.samples; ++j) {
      if (words.samples[static_cast<std::size_t>(j)] != words.labels[static_cast<std::size_t>(row)]) continue;
      penalty[static_cast<std::size_t>(row * e.columns() + 1 + j)] = -1e4f;
    }
  }
  add(penalty.to(active_device()).view(), logits.values());
}

/// The tensors of the logits, with the weights of the rows' labels (width, rows) and of the samples (samples,
/// width).
struct SampledTensors {
  TensorRef x, weights, biases;
  SampledExtents extents;
  std::shared_ptr<const Array> own, sampled;
};

/// The gradient of the logits: of each row's label (rows), as floats, and of the samples (rows, samples).
struct LogitsGradient {
  Array of_row, of_sample;

  [[nodiscard]] ConstColumns row_factors() const { return {of_row.view(), 0, 0}; }
};

LogitsGradient parted(const SampledExtents& e, const Array& gradient) {
  Array of_row({e.rows}, gradient.dtype()), of_sample({e.rows, e.samples}, gradient.dtype());
  copy_columns({e.rows, 1}, {gradient.view(), 0, e.columns()}, {of_row.view(), 0, 1});
  copy_columns({e.rows, e.samples}, {gradient.view(), 1, e.columns()}, {of_sample.view(), 0, e.samples});
  return {to_dtype(std::move(of_row), DType::f32), std::move(of_sample)};
}

/// Each row of x alone meets its label's weights; all rows meet the samples'.
void add_weight_gradient(BackwardScope& scope, const SampledTensors& t, const LogitsGradient& gradient) {
  const SampledExtents& e = t.extents;
  Array products({e.width, e.rows}), weight_rows({e.rows + e.samples, e.width});
  const auto rows = static_cast<std::size_t>(e.rows * e.width);
  scale_columns(e, columns_first(scope.value(t.x), e.rows, e.width), gradient.row_factors(), products);
  transpose(products.view(), e.width, e.rows, weight_rows.view().part(0, rows));
  const Array sums = weight_gradient({gradient.of_sample.view(), scope.value(t.x).view(), e.samples, e.width},
                                     scope.policy().products);
  convert(sums.view(), weight_rows.view().part(rows, weight_rows.size() - rows));
  scope.add_gradient(t.weights, std::move(weight_rows));
}

void add_bias_gradient(BackwardScope& scope, const SampledTensors& t, const LogitsGradient& gradient) {
  const SampledExtents& e = t.extents;
  Array bias_rows({e.rows + e.samples, 1});
  const auto labels = static_cast<std::size_t>(e.rows);
  convert(gradient.of_row.view(), bias_rows.view().part(0, labels));
  convert(bias_gradient(gradient.of_sample.view(), e.samples).view(),
          bias_rows.view().part(labels, bias_rows.size() - labels));
  scope.add_gradient(t.biases, std::move(bias_rows));
}

void add_input_gradients(BackwardScope& scope, const SampledTensors& t, const LogitsGradient& gradient) {
  const SampledExtents& e = t.extents;
  Array products({e.width, e.rows});
  scale_columns(e, *t.own, gradient.row_factors(), products);
  Array through_own(scope.value(t.x).shape()), through_samples(scope.value(t.x).shape());
  transpose(products.view(), e.width, e.rows, through_own.view());
  scope.add_gradient(t.x, std::move(through_own));
  multiply_rows(gradient.of_sample.view(), *t.sampled, scope.policy().products, through_samples.values());
  scope.add_gradient(t.x, std::move(through_samples));
}

}  // namespace

TensorRef sampled_logits(Tape& tape, const std::string& name, TensorRef x, SampledWords words) {
  const Operation operation = tape.operation("sampled_logits", name, {&x, &words.weights, &words.biases});
  const SampledExtents e = extents_of(tape, name, x, words);
  const Array& weights = tape.value(words.weights);
  const SampledTensors tensors{x,
                               words.weights,
                               words.biases,
                               e,
                               std::make_shared<const Array>(columns_first(weights, e.rows, e.width)),
                               std::make_shared<const Array>(last_rows(weights, e.samples, e.width))};
  const Array turned = columns_first(tape.value(x), e.rows, e.width);
  Array of_labels({e.rows}), of_samples({e.rows, e.samples}), logits({e.rows, e.columns()});
  operation.casts().sum_columns(name + ".dot",
                                {.term = Term::product,
                                 .x = ElementReader(turned.view()),
                                 .y = ElementReader(tensors.own->view()),
                                 .rows = e.width,
                                 .columns = e.rows},
                                operation.policy().reductions_in(name), of_labels.values());
  multiply_rows(tape.value(x).view(), transposed(*tensors.sampled), operation.policy().products,
                of_samples.values());
  copy_columns({e.rows, 1}, {of_labels.view(), 0, 1}, {logits.view(), 0, e.columns()});
  copy_columns({e.rows, e.samples}, {of_samples.view(), 0, e.samples}, {logits.view(), 1, e.columns()});
  correct(e, tape.value(words.biases), words, logits);
  leave_out_hits(e, words, logits);

  const auto backward = [tensors](BackwardScope& scope, Array gradient) {
    const LogitsGradient of_logits = parted(tensors.extents, gradient);
    add_weight_gradient(scope, tensors, of_logits);
    add_bias_gradient(scope, tensors, of_logits);
    add_input_gradients(scope, tensors, of_logits);
  };
  return operation.record({.value = std::move(logits), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
