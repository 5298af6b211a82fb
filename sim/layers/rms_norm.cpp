// Forward and backward of root mean square normalisation, on the transposed input as layer normalisation.
#include "sim/layers/layers.hpp"

#include <memory>

#include "lib/nn/batch_norm.hpp"
#include "lib/nn/layer_norm.hpp"

#include "sim/layers/matrix.hpp"
#include "sim/layers/reduction.hpp"

namespace halfscope {
namespace {

/// Results of forward that backward needs.
struct SavedRmsNorm {
  Array normalised;    // (rows, features)
  Array inverse_root;  // (rows)
  Array zeros;         // (rows): means that are not taken off
};

/// (rows): the mean over each row of a times b, both (rows, features).
Array row_means(const CastScope& casts, const std::string& name, const char* tensor, const Array& a,
                const Array& b) {
  const std::int64_t rows = a.extent(0), features = a.extent(1);
  const Array left = transposed(a), right = transposed(b);
  const ColumnTerms terms{
      .term = Term::product, .x = left.data(), .y = right.data(), .rows = features, .columns = rows};
  return mean_of(reduce(casts, name, tensor, terms), features);
}

SavedRmsNorm normalise_by_root(const CastScope& casts, const std::string& name, const Array& x,
                               float epsilon) {
  Array matrix = stored_copy(x, DType::f32);
  const std::int64_t features = x.shape().back();
  matrix.reshape({static_cast<std::int64_t>(x.size()) / features, features});
  Array roots = row_means(casts, name, "mean_square", matrix, matrix);
  inverse_deviations(roots.values(), epsilon, roots.values());
  Array zeros = Array::zeros(roots.shape());
  normalise_rows(zeros.values(), roots.values(), matrix.values());
  return {std::move(matrix), std::move(roots), std::move(zeros)};
}

}  // namespace

TensorRef rms_norm(Tape& tape, const std::string& name, TensorRef x, const RmsNormParameters& parameters) {
  const Operation operation = tape.operation("rms_norm", name, {&x});
  const TensorRef gamma = operation.parameter(parameters.gamma);
  const Array& input = tape.value(x);
  const std::size_t features = tape.value(gamma).size();
  if (input.shape().empty() || static_cast<std::size_t>(input.shape().back()) != features) {
    throw InvalidArgument("layer " + name + ": input " + to_string(input.shape()) + " does not fit gamma " +
                          to_string(tape.value(gamma).shape()));
  }
  const auto saved = std::make_shared<const SavedRmsNorm>(
      normalise_by_root(operation.casts(), name, input, parameters.epsilon));
  Array y = saved->normalised.clone();
  scale_columns(tape.floats(gamma).values(), y.values());
  y.reshape(input.shape());

  const auto backward = [name, x, gamma, saved](BackwardScope& scope, Array gradient) {
    gradient = to_dtype(std::move(gradient), DType::f32);
    gradient.reshape(saved->normalised.shape());
    const ColumnTerms terms{.term = Term::product,
                            .x = gradient.data(),
                            .y = saved->normalised.data(),
                            .rows = gradient.extent(0),
                            .columns = gradient.extent(1)};
    scope.add_gradient(gamma, reduce(scope.casts(), name, "gamma_gradient", terms));
    scale_columns(scope.floats(gamma).values(), gradient.values());
    const Array means = row_means(scope.casts(), name, "square_gradient", gradient, saved->normalised);
    normalise_rows_gradient(
        {saved->normalised.values(), saved->inverse_root.values(), saved->zeros.values(), means.values()},
        gradient.values());
    gradient.reshape(scope.value(x).shape());
    scope.add_gradient(x, std::move(gradient));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
