// Forward and backward of layer normalisation, on the transposed input: its rows are columns there, which
// the reduction kernels sum.
#include "sim/layers/layers.hpp"

#include <memory>

#include "lib/nn/batch_norm.hpp"
#include "lib/nn/layer_norm.hpp"

#include "sim/layers/matrix.hpp"
#include "sim/layers/reduction.hpp"

namespace halfscope {
namespace {

/// Results of forward that backward needs.
struct SavedLayerNorm {
  Array normalised;         // (rows, features)
  Array inverse_deviation;  // (rows)
};

/// (rows, features) whatever the leading axes.
Array as_matrix(const Array& x) {
  Array matrix = stored_copy(x, DType::f32);
  const std::int64_t features = x.shape().back();
  matrix.reshape({static_cast<std::int64_t>(x.size()) / features, features});
  return matrix;
}

SavedLayerNorm normalise(const CastScope& casts, const std::string& name, const Array& x, float epsilon) {
  SavedLayerNorm saved{as_matrix(x), {}};
  const std::int64_t rows = saved.normalised.extent(0), features = saved.normalised.extent(1);
  const Array columns = transposed(saved.normalised);
  ColumnTerms terms{.x = columns.data(), .rows = features, .columns = rows};
  const Array mean = mean_of(reduce(casts, name, "mean", terms), features);
  terms.term = Term::squared_deviation;
  terms.center = mean.data();
  saved.inverse_deviation = mean_of(reduce(casts, name, "variance", terms), features);
  inverse_deviations(saved.inverse_deviation.values(), epsilon, saved.inverse_deviation.values());
  normalise_rows(mean.values(), saved.inverse_deviation.values(), saved.normalised.values());
  return saved;
}

/// `gradient` of y times gamma becomes the gradient of x: inverse_deviation * (g - mean(g) - normalised *
/// mean(g * normalised)), the means over each row.
void gradient_of_rows(const CastScope& casts, const std::string& name, const SavedLayerNorm& saved,
                      Array& gradient) {
  const std::int64_t rows = saved.normalised.extent(0), features = saved.normalised.extent(1);
  const Array columns = transposed(gradient), normalised = transposed(saved.normalised);
  ColumnTerms terms{.x = columns.data(), .rows = features, .columns = rows};
  const Array mean = mean_of(reduce(casts, name, "mean_gradient", terms), features);
  terms.term = Term::product;
  terms.y = normalised.data();
  const Array mean_normalised = mean_of(reduce(casts, name, "variance_gradient", terms), features);
  normalise_rows_gradient(
      {saved.normalised.values(), saved.inverse_deviation.values(), mean.values(), mean_normalised.values()},
      gradient.values());
}

}  // namespace

TensorRef layer_norm(Tape& tape, const std::string& name, TensorRef x,
                     const LayerNormParameters& parameters) {
  const Operation operation = tape.operation("layer_norm", name, {&x});
  const TensorRef gamma = operation.parameter(parameters.gamma);
  const TensorRef beta = operation.parameter(parameters.beta);
  const Array& input = tape.value(x);
  const std::size_t features = tape.value(gamma).size();
  if (input.shape().empty() || static_cast<std::size_t>(input.shape().back()) != features) {
    throw InvalidArgument("layer " + name + ": input " + to_string(input.shape()) + " does not fit gamma " +
                          to_string(tape.value(gamma).shape()));
  }
  auto saved =
      std::make_shared<SavedLayerNorm>(normalise(operation.casts(), name, input, parameters.epsilon));
  Array y(input.shape());
  scale_and_shift(saved->normalised.values(), tape.floats(gamma).values(), tape.floats(beta).values(),
                  y.values());

  const auto backward = [name, x, gamma, beta, saved](BackwardScope& scope, Array gradient) {
    gradient = to_dtype(std::move(gradient), DType::f32);
    gradient.reshape(saved->normalised.shape());
    ColumnTerms terms{.x = gradient.data(), .rows = gradient.extent(0), .columns = gradient.extent(1)};
    scope.add_gradient(beta, reduce(scope.casts(), name, "beta_gradient", terms));
    terms.term = Term::product;
    terms.y = saved->normalised.data();
    scope.add_gradient(gamma, reduce(scope.casts(), name, "gamma_gradient", terms));
    scale_columns(scope.floats(gamma).values(), gradient.values());
    gradient_of_rows(scope.casts(), name, *saved, gradient);
    gradient.reshape(scope.value(x).shape());
    scope.add_gradient(x, std::move(gradient));
  };
  return operation.record({.value = std::move(y), .rounds = Rounds::yes, .backward = backward});
}

}  // namespace halfscope
